import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommitJournal, newMark } from "./commit-journal.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-journal-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let journalCount = 0;
const freshPath = () => join(root, `${++journalCount}.commits`);

function openJournal(path = freshPath(), mark = newMark()) {
  const journal = new CommitJournal(path, { reachesDisk: false });
  journal.restart(mark);
  return { journal, path, mark };
}

/** What a gateway finds that opens the journal after this one ended. */
function foundLater(path: string, mark: string): string[] {
  const journal = new CommitJournal(path, { reachesDisk: true });
  try {
    return journal.read(mark);
  } finally {
    journal.close();
  }
}

const batches = ['[[0,0,["a"],[1]]]', '["naïve 😀 \\n"]', "[]", '[[1,0,["b"]]]'];

describe("a journal of commits", () => {
  test.each([true, false])(
    "holds what was written down, in order, where it has to reach the disk: %p",
    (reachesDisk) => {
      const path = freshPath();
      const journal = new CommitJournal(path, { reachesDisk });
      const mark = newMark();
      journal.restart(mark);
      for (const batch of batches) expect(journal.append(batch)).toBe(true);
      expect(foundLater(path, mark)).toEqual(batches);
      expect(statSync(path).mode & 0o777).toBe(0o600);
    },
  );

  test("is empty under every other mark, and after its own is over", () => {
    const { journal, path, mark } = openJournal();
    for (const batch of batches) journal.append(batch);
    expect(foundLater(path, newMark())).toEqual([]);
    const next = newMark();
    journal.restart(next);
    expect(foundLater(path, next)).toEqual([]);
    journal.append("[2]");
    expect(foundLater(path, next)).toEqual(["[2]"]);
    expect(foundLater(path, mark)).toEqual([]);
  });

  test("is read up to the record that was not written to its end, wherever it was cut", () => {
    const { journal, path, mark } = openJournal();
    const ends = batches.map((batch) => {
      journal.append(batch);
      return readFileSync(path).lastIndexOf("\n") + 1;
    });
    const whole = readFileSync(path);
    for (let cut = 0; cut < (ends.at(-1) ?? 0); cut += 1) {
      writeFileSync(
        path,
        Buffer.concat([whole.subarray(0, cut), Buffer.alloc(whole.length - cut)]),
      );
      expect(foundLater(path, mark)).toEqual(
        batches.slice(0, ends.filter((end) => end <= cut).length),
      );
    }
  });

  test("a record in which a byte is wrong does not count, nor does what follows it", () => {
    const { journal, path, mark } = openJournal();
    for (const batch of batches) journal.append(batch);
    const bytes = readFileSync(path);
    const at = bytes.indexOf("naïve") + 1;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    expect(foundLater(path, mark)).toEqual(batches.slice(0, 1));
  });

  test("takes no more than it has room for, and keeps its size", () => {
    const { journal, path, mark } = openJournal();
    const { size } = statSync(path);
    const batch = JSON.stringify("ü".repeat(30_000));
    let taken = 0;
    while (journal.append(batch)) taken += 1;
    expect(taken).toBe(Math.floor(size / (2 * 30_000 + 2 + mark.length + 9)));
    expect(journal.append("[]")).toBe(true);
    expect(foundLater(path, mark)).toHaveLength(taken + 1);
    expect(statSync(path).size).toBe(size);
  });
});
