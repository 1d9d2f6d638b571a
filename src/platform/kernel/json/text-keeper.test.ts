import { expect, test } from "bun:test";
import { keptCharactersMax, keptText, TextKeeper } from "./text-keeper.ts";

const picture = Buffer.alloc(30_000, 9).toString("base64");
const long = "word ".repeat(keptCharactersMax / 5 + 1);

test("a text is cut between whole characters, and a short one is kept as it is", () => {
  expect(keptText("short")).toEqual({ text: "short", isCut: false });
  const { text, isCut } = keptText(`${"x".repeat(keptCharactersMax - 1)}😀 and more`);
  expect([text.length, isCut]).toEqual([keptCharactersMax, true]);
  expect(text.isWellFormed()).toBe(true);
});

test.each([
  ["a data URL", `{"url":"data:image/webp;base64,${picture}"}`, "image/webp"],
  [
    "escaped slashes",
    `{"url":"data:image\\/webp;base64,${picture.replaceAll("/", "\\/")}"}`,
    "image/webp",
  ],
  ["base64 of a known type", `{"data":"iVBORw0KGgo${picture}"}`, "image/png"],
  ["other base64", `{ "data" : "${picture}" }`, "file"],
])("%s is kept whole, or named with its size", (_, file, type) => {
  const whole = `[${file},"${"y ".repeat(keptCharactersMax / 2 - 100)}"]`;
  expect(keptText(whole, 40_000)).toEqual({ text: whole, isCut: false });
  const { text, isCut } = keptText(whole, 20_000);
  expect(isCut).toBe(true);
  expect(text).toMatch(new RegExp(`"\\[${type} of 3000\\d bytes, not kept\\]"`));
  expect(() => JSON.parse(text) as unknown).not.toThrow();
});

test("a file within a string of JSON is named without the end of that string", () => {
  const text = JSON.stringify({ arguments: JSON.stringify({ data: picture }), content: long });
  const kept = keptText(text);
  expect(kept.isCut).toBe(true);
  const [head] = kept.text.split(',"content"');
  const { arguments: called } = JSON.parse(`${head}}`) as { arguments: string };
  expect(JSON.parse(called)).toEqual({ data: "[file of 30000 bytes, not kept]" });
});

test("a text that looks like padding is measured at once", () => {
  const text = JSON.stringify([`${"=".repeat(4_000_000)}A`]);
  expect(keptText(text).text).toMatch(/^\["\[file of \d+ bytes, not kept\]"\]$/);
});

test("the room is shared by the pieces of a stream, and partial pictures take none", () => {
  const keeper = new TextKeeper(65_000);
  const frame = (member: string): string => `data: {"${member}":"${picture}"}\n\n`;
  keeper.add(frame("partial_image_b64"));
  for (let count = 0; count < 3; count += 1) keeper.add(frame("result"));
  const { text, isCut } = keeper.kept;
  expect(text.split(picture)).toHaveLength(3);
  expect(text.split("not kept")).toHaveLength(3);
  expect(isCut).toBe(true);
});

test("nothing is kept behind the place where a text was cut", () => {
  const { text } = keptText(`{"text":"${long}","url":"data:image/png;base64,${picture}"}`, 40_000);
  expect(text).toHaveLength(keptCharactersMax);
});
