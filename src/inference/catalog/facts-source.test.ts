import { expect, test } from "bun:test";
import { parseFactsSource } from "./facts-source.ts";

const model = { id: "m", name: "M", limit: { context: 1, output: 1 }, a_new_member: true };

test("reads a dated list of providers", () => {
  const source = {
    source: "somewhere",
    snapshot: "2026-07-02",
    providers: [{ id: "p", name: "P", models: [model] }],
  };
  const parsed = parseFactsSource(source, "2026-12-01");
  expect(parsed).toMatchObject({
    source: "somewhere",
    snapshot: "2026-07-02",
    providers: [{ id: "p", models: [{ id: "m" }] }],
  });
});

test("reads models.dev's api.json, dated by the day of the refresh", () => {
  const parsed = parseFactsSource(
    { p: { id: "p", name: "P", env: [], models: { m: model } } },
    "2026-12-01",
  );
  expect(parsed).toMatchObject({
    snapshot: "2026-12-01",
    providers: [{ id: "p", models: [{ id: "m" }] }],
  });
  expect(parsed.source).toStartWith("models.dev");
});

test.each([
  ["no providers", {}],
  ["an empty list", { source: "s", snapshot: "2026-07-02", providers: [] }],
  [
    "a date that is none",
    { source: "s", snapshot: "July", providers: [{ id: "p", name: "P", models: [] }] },
  ],
  [
    "a price that is text",
    { p: { id: "p", name: "P", models: { m: { ...model, cost: { input: "1", output: 2 } } } } },
  ],
  ["a model without a name", { p: { id: "p", name: "P", models: { m: { id: "m" } } } }],
  ["an error page", "<html>"],
])("refuses %s", (_, source) => {
  expect(() => parseFactsSource(source, "2026-12-01")).toThrow();
});
