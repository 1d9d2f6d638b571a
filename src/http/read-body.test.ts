import { expect, test } from "bun:test";
import { readJsonText } from "./read-body.ts";

const posted = (body: string): Request =>
  new Request("http://localhost/", {
    method: "POST",
    body,
    headers: { "content-length": String(Buffer.byteLength(body)) },
  });

/** A list of texts with so many entries, and spaces up to so many bytes. */
const listOf = (entries: number, bytes: number): string =>
  `[${Array.from({ length: entries }, () => '""').join(",")}]`.padEnd(bytes);

test.each([
  ["one piece", 200_000],
  ["pieces", 3_000_000],
])("JSON that is read in %s is bounded", async (_, bytes) => {
  const fitting = listOf(50_000, bytes);
  expect(await readJsonText(posted(fitting), 4_000_000)).toBe(fitting);
  const reading = readJsonText(posted(listOf(50_001, bytes)), 4_000_000);
  await expect(reading).rejects.toMatchObject({ code: "content_too_large" });
});
