import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { touchedLines } from "../../bench/files-touched/touched-lines.ts";
import ratchet from "./files-of-a-request.json";

/** Files by which a measurement may differ: the engine does not count every line of compiled code. */
const tolerance = 3;

const root = join(import.meta.dir, "..", "..");
const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8").replaceAll(/\s+/g, " ");

test("a request runs through no more files than before", async () => {
  const most = new Map<string, number>(Object.entries(ratchet));
  const measured = await touchedLines();
  expect([...measured.keys()] as string[]).toEqual([...most.keys()]);
  const risen = [...measured].filter(
    ([name, files]) => files.size > (most.get(name) ?? 0) + tolerance,
  );
  expect(
    risen.map(
      ([name, { size }]) => `${name}: ${size} files; npm run bench:files -- --files lists them`,
    ),
  ).toEqual([]);
}, 600_000);

test("ARCHITECTURE.md has the figures of a request", () => {
  expect(page).toContain(
    `One chat request runs through ${ratchet.chat} of them, a streamed one through ` +
      `${ratchet["chat, streamed"]}, and a streamed Messages request before a chat upstream through ` +
      `${ratchet["Messages to chat, streamed"]}`,
  );
});

test("ARCHITECTURE.md has the number of files, to the nearest hundred", () => {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".ts") && !path.endsWith(".test.ts"),
  );
  const hundreds = (Math.round(files.length / 100) * 100).toLocaleString("en-US");
  expect(page).toContain(`\`src/\` has some ${hundreds} files without tests`);
});
