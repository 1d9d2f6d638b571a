import { describe, expect, test } from "bun:test";
import { legalName, ToolNamer, unwrapInput, wrapInput } from "./shared/tools.ts";

describe("legalName", () => {
  test("keeps valid names", () => {
    for (const name of ["f", "get_weather", "a-b", "x".repeat(64)])
      expect(legalName(name, 64)).toBe(name);
  });

  test("makes other names valid, short, distinct and deterministic", () => {
    const names = [
      "files.read",
      "files:read",
      "файл",
      "x".repeat(65),
      `${"x".repeat(64)}y`,
      "",
      "a b",
    ];
    const legal = names.map((name) => legalName(name, 64));
    for (const name of legal) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(new Set(legal).size).toBe(names.length);
    expect(names.map((name) => legalName(name, 64))).toEqual(legal);
  });
});

test("ToolNamer keeps aliases only for changed names", () => {
  const namer = new ToolNamer({ maxLength: 64, wrapsCustom: true });
  expect(namer.wireName({ kind: "function", name: "f" })).toBe("f");
  expect(namer.wireName({ kind: "custom", name: "p" })).toBe("p");
  expect(namer.wireName({ kind: "function", name: "f", namespace: "ns" })).toBe("ns__f");
  expect([...namer.aliases]).toEqual([
    ["p", { name: "p", unwrapsInput: true }],
    ["ns__f", { name: "f", namespace: "ns" }],
  ]);
});

test("unwrapInput restores wrapped input, and returns other text unchanged", () => {
  for (const input of ["", '*** Begin "Patch"\n', "{}"])
    expect(unwrapInput(wrapInput(input))).toBe(input);
  for (const text of ["plain", "{}", "null", '{"input":1}', '{"inp'])
    expect(unwrapInput(text)).toBe(text);
});
