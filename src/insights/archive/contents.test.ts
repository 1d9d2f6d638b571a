import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FaultScrapes, testAlert } from "../../../test/support/alert-firing.ts";
import {
  type ArchivedStorage,
  archiveScrape,
  openArchived,
  openTestVault,
} from "../../../test/support/archive.ts";
import { type ClickHouseServer, startClickHouse } from "../../../test/support/clickhouse.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { openInsightStorage } from "../../../test/support/generation-records.ts";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { dayMs, systemClock } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";
import type { Content, ContentTables } from "./content-insert.ts";
import { Contents } from "./contents.ts";
import { forgetOutbox } from "./outbox-add.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-contents-"));
let clickhouse: ClickHouseServer;
let count = 0;
beforeAll(async () => {
  clickhouse = await startClickHouse();
}, 240_000);
afterAll(async () => {
  await clickhouse.stop();
  rmSync(root, { recursive: true, force: true });
});

const fresh = (): { url: string; archiveUrl: string; name: string } => {
  const name = `contents_${++count}`;
  return { name, url: `sqlite:${join(root, `${name}.db`)}`, archiveUrl: clickhouse.urlOf(name) };
};

const engines: [string, () => Promise<string>][] = [
  ["SQLite", () => Promise.resolve(fresh().url)],
  ["Postgres", migratedDatabase],
];

async function within<Result>(
  options: Parameters<typeof openArchived>[0],
  work: (opened: ArchivedStorage) => Promise<Result>,
): Promise<Result> {
  const opened = await openArchived(options);
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}

const contentOf = (
  workspaceId: string,
  { createdAtMs = systemClock.nowMs(), text = "What is said?" } = {},
): Content => ({
  generationId: newId("gen", createdAtMs),
  workspaceId,
  keyId: "key_one",
  createdAtMs,
  surface: "chat",
  streamed: false,
  request: { text, isCut: false },
  answer: { text: "Ünsaid \u{1F600}", isCut: true },
});

/** Ids and workspaces of the archive's rows, repetitions too. */
const archived = async (name: string): Promise<string[]> =>
  (
    await clickhouse.ask(name, "select workspace_id from switchyard_contents order by workspace_id")
  ).map((row) => String(row["workspace_id"]));

const waiting = async ({ storage, archive }: ArchivedStorage): Promise<string[]> => {
  await archive.contents.written();
  expect(archive.figures.archived).toBe(0);
  const rows = await storage.database
    .selectFrom("content_outbox")
    .select("workspace_id")
    .orderBy("generation_id")
    .execute();
  return rows.map((row) => row.workspace_id);
};

describe.each(engines)("request contents in a database on %s", (_, databaseUrl) => {
  let dropScrapes: FaultScrapes;
  test("are archived once, leave the database, and are readable only by their workspace", async () => {
    const { name, archiveUrl } = fresh();
    const contents = Array.from({ length: 70 }, () => contentOf("ws_a"));
    const asked = contents[69] ?? contentOf("ws_a");
    const contentsSince = new Map([["ws_a", asked.createdAtMs - 60_000]]);
    await within({ url: await databaseUrl(), archiveUrl, contentsSince }, async (opened) => {
      const { contents: kept } = opened.archive;
      for (const content of contents) kept.write(content);
      const query = { workspaceId: "ws_a", id: asked.generationId, sinceMs: asked.createdAtMs };
      const readEverywhere = async (): Promise<void> => {
        expect(await kept.find(query)).toEqual(asked);
        expect(await kept.find({ ...query, workspaceId: "ws_b" })).toBeUndefined();
        expect(await kept.find({ ...query, sinceMs: asked.createdAtMs + 1 })).toBeUndefined();
      };
      const [, second] = [kept.round(), kept.round()];
      await second;
      await readEverywhere();
      expect(await waiting(opened)).toEqual([]);
      expect((await archived(name)).length).toBe(70);
      expect(kept.figures).toEqual({ waiting: 0, archived: 70, dropped: 0 });
    });
    const [table] = await clickhouse.ask(
      name,
      `select create_table_query as text from system.tables where database = '${name}' and name = 'switchyard_contents'`,
    );
    expect(table?.["text"]).toContain("toIntervalDay(7)");
  }, 240_000);

  test("are stored only encrypted, and are refused under the id of another record", async () => {
    const { name, archiveUrl } = fresh();
    const text = "Xylophonisch ".repeat(40);
    const [own, other] = [contentOf("ws_a", { text }), contentOf("ws_b", { text })];
    const queryOf = ({ workspaceId, generationId: id }: Content) => ({
      workspaceId,
      id,
      sinceMs: 1,
    });
    const contentsSince = new Map(["ws_a", "ws_b"].map((id) => [id, 1]));
    await within({ url: await databaseUrl(), archiveUrl, contentsSince }, async (opened) => {
      const { storage, archive } = opened;
      const outbox = () => storage.database.selectFrom("content_outbox").selectAll().execute();
      for (const content of [own, other]) archive.contents.write(content);
      await archive.contents.written();
      const rows = await outbox();
      expect(rows.length).toBe(2);
      expect(JSON.stringify(rows)).not.toMatch(/Xylophonisch|nsaid \u{1F600}/u);
      await archive.contents.round();
      expect(await outbox()).toEqual([]);
      const stored = await clickhouse.ask(name, "select * from switchyard_contents");
      expect(stored.length).toBe(2);
      expect(JSON.stringify(stored)).not.toMatch(/Xylophonisch|nsaid \u{1F600}/u);
      expect(await archive.contents.find(queryOf(own))).toEqual(own);
      // Back in the outbox, where rows are looked for first, with what is the other's, piece by piece.
      const [row, theirs] = rows.toSorted((one) => (one.workspace_id === "ws_a" ? -1 : 1));
      if (row === undefined || theirs === undefined) throw new Error("no rows");
      await storage.database.insertInto("content_outbox").values(row).execute();
      for (const change of [
        { request: theirs.request },
        { answer: theirs.answer },
        { request: row.answer, answer: row.request },
        { key_id: "key_two" },
        { created_at_ms: Number(row.created_at_ms) + 1 },
      ]) {
        await storage.database
          .updateTable("content_outbox")
          .set({ ...row, ...change })
          .execute();
        await expect(archive.contents.find(queryOf(own))).rejects.toThrow("could not be decrypted");
      }
      await storage.database
        .updateTable("content_outbox")
        .set({ ...row, workspace_id: "ws_b" })
        .execute();
      await expect(archive.contents.find({ ...queryOf(own), workspaceId: "ws_b" })).rejects.toThrow(
        "could not be decrypted",
      );
      const clear = { request: "{}", answer: 'data: {"a":"v1|"}\n\n' };
      await storage.database
        .updateTable("content_outbox")
        .set({ ...row, ...clear })
        .execute();
      const found = await archive.contents.find(queryOf(own));
      expect([found?.request.text, found?.answer.text]).toEqual([clear.request, clear.answer]);
    });
  }, 240_000);

  test("are dropped if their workspace stopped storing contents, or had not started yet", async () => {
    const { name, archiveUrl } = fresh();
    const nowMs = systemClock.nowMs();
    const contentsSince = new Map(["ws_a", "ws_b"].map((id) => [id, nowMs - 1_000]));
    await within({ url: await databaseUrl(), archiveUrl, contentsSince }, async (opened) => {
      const { contents: kept } = opened.archive;
      const write = (): void => {
        kept.write(contentOf("ws_a"));
        kept.write(contentOf("ws_b"));
        kept.write(contentOf("ws_b", { createdAtMs: nowMs - 2_000 }));
        kept.write(contentOf("ws_closed"));
      };
      write();
      await kept.round();
      expect(await archived(name)).toEqual(["ws_a", "ws_b"]);
      contentsSince.delete("ws_a");
      write();
      expect((await waiting(opened)).length).toBe(4);
      await kept.erase();
      expect(await waiting(opened)).toEqual(["ws_b"]);
      expect(await archived(name)).toEqual(["ws_b"]);
    });
  }, 240_000);

  test("are dropped and counted from the oldest on if they exceed the budget", async () => {
    const { archiveUrl } = fresh();
    let dropped = 0;
    const options = {
      archiveUrl,
      // Each takes some 550 characters when it is encrypted.
      contentBudgetCharacters: 1_600,
      onContentsDropped: (contents: number) => void (dropped += contents),
    };
    await within({ url: await databaseUrl(), ...options }, async (opened) => {
      const { contents: kept } = opened.archive;
      const before = await archiveScrape(opened);
      const startMs = systemClock.nowMs() - 60_000;
      for (const index of [1, 2, 3, 4])
        kept.write(
          contentOf(`ws_${index}`, {
            createdAtMs: startMs + index,
            text: randomBytes(300).toString("hex"),
          }),
        );
      await kept.written();
      await kept.trim();
      expect(await waiting(opened)).toEqual(["ws_3", "ws_4"]);
      expect(dropped).toBe(2);
      expect(kept.figures).toEqual({ waiting: 2, archived: 0, dropped: 2 });
      dropScrapes = { before, during: await archiveScrape(opened) };
      await kept.trim();
      expect(dropped).toBe(2);
    });
  }, 240_000);
  testAlert("SwitchyardArchiveContentsDropped", () => dropScrapes);
});

test("contents with files are read one after the other, and archived by size", async () => {
  const { name, url, archiveUrl } = fresh();
  // As sound and pictures are, which do not compress; two of them exceed an insert.
  const long = Array.from({ length: 2 }, () =>
    contentOf("ws_a", { text: randomBytes(5_000_000).toString("base64") }),
  );
  const contentsSince = new Map([["ws_a", 1]]);
  await within({ url, archiveUrl, contentsSince }, async (opened) => {
    const { contents } = opened.archive;
    let reading = 0;
    const late = (content: Content): Promise<void> =>
      contents.writeLate({
        characters: 0,
        async read() {
          expect((reading += 1)).toBe(1);
          await Promise.resolve();
          reading -= 1;
          return content;
        },
      });
    const lost = contents.writeLate({
      characters: 0,
      read: () => Promise.reject(new Error("the file is gone")),
    });
    const [first] = await Promise.all([...long.map(late), lost]);
    expect(first).toBeUndefined();
    await contents.round();
    expect(contents.figures).toEqual({ waiting: 0, archived: 2, dropped: 1 });
    for (const content of long)
      expect(
        await contents.find({ workspaceId: "ws_a", id: content.generationId, sinceMs: 1 }),
      ).toEqual(content);
  });
  expect(await archived(name)).toHaveLength(2);
}, 240_000);

test("contents wait while the archive is down, and are archived once when it is back", async () => {
  const { name, url, archiveUrl } = fresh();
  const contentsSince = new Map([["ws_a", 1]]);
  await within({ url, archiveUrl, contentsSince }, async (opened) => {
    const { contents: kept } = opened.archive;
    await kept.round();
    await clickhouse.kill();
    const content = contentOf("ws_a");
    kept.write(content);
    expect(await waiting(opened)).toEqual(["ws_a"]);
    expect(
      await kept.round().then(
        () => "it did not fail",
        (error: unknown) => String(error),
      ),
    ).toContain("ECONNREFUSED");
    const query = { workspaceId: "ws_a", id: content.generationId, sinceMs: 1 };
    expect(await kept.find(query)).toEqual(content);
    await clickhouse.restart();
    await clickhouse.insertAnswers("lost");
    expect(await kept.round().catch((error: unknown) => String(error))).toContain("lost");
    await kept.round();
    expect(await waiting(opened)).toEqual([]);
    expect(await archived(name)).toEqual(["ws_a"]);
    expect(await kept.find(query)).toEqual(content);
  });
}, 240_000);

test("contents that wait for an archive that is no longer configured stay in the database", async () => {
  const { url, archiveUrl } = fresh();
  await within({ url, archiveUrl }, async (opened) => {
    const { archive, storage } = opened;
    await archive.archiver.round();
    archive.contents.write(contentOf("ws_a"));
    expect(await waiting(opened)).toEqual(["ws_a"]);
    await forgetOutbox(withTables(storage.database));
    expect(await waiting(opened)).toEqual(["ws_a"]);
  });
}, 240_000);

describe.each(engines)(
  "request contents without an archive, in a database on %s",
  (_, databaseUrl) => {
    test("are kept for some days and of workspaces that keep them, the newest ones within a budget", async () => {
      const storage = await openInsightStorage(await databaseUrl());
      const clock = new FakeClock();
      const keptSince = new Map([
        ["ws_a", 1],
        ["ws_b", 1],
      ]);
      const failures: unknown[] = [];
      const kept = new Contents({
        database: withTables(storage.database),
        commits: storage.commits,
        archived: undefined,
        vault: await openTestVault(),
        clock,
        keepDays: 3,
        // Each takes some 550 characters when it is encrypted.
        budgetCharacters: 1_600,
        keptSince: () => Promise.resolve(keptSince),
        onDropped: () => undefined,
        onError: (error) => void failures.push(error),
      });
      const write = (workspaceId: string): Content => {
        clock.advance(1);
        const text = randomBytes(300).toString("hex");
        const content = contentOf(workspaceId, { createdAtMs: clock.nowMs(), text });
        kept.write(content);
        return content;
      };
      const isFound = async ({ workspaceId, generationId: id }: Content): Promise<boolean> =>
        (await kept.find({ workspaceId, id, sinceMs: 1 })) !== undefined;
      const rows = async (): Promise<string[]> =>
        (
          await withTables<Pick<ContentTables, "content_outbox">>(storage.database)
            .selectFrom("content_outbox")
            .select("workspace_id")
            .orderBy("generation_id")
            .execute()
        ).map((row) => row.workspace_id);
      const contents = [write("ws_a"), write("ws_a"), write("ws_b")];
      expect(await Promise.all(contents.map(isFound))).toEqual([true, true, true]);
      await kept.round();
      expect(await rows()).toEqual(["ws_a", "ws_b"]);
      expect(kept.figures).toEqual({ waiting: 2, archived: 0, dropped: 1 });
      keptSince.delete("ws_b");
      kept.eraseSoon();
      await kept.stop();
      expect(await rows()).toEqual(["ws_a"]);
      clock.advance(3 * dayMs);
      expect(await isFound(contents[1]!)).toBe(false);
      await kept.round();
      expect(await rows()).toEqual([]);
      expect(failures).toEqual([]);
      await storage.close();
    }, 240_000);
  },
);
