import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { catalogFactsSchema } from "../src/inference/catalog/catalog-facts.ts";
import { refreshCatalog } from "./catalog-refresh.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "catalog-refresh-"));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

const sourceWith = (input: number) => ({
  groq: {
    id: "groq",
    name: "Groq",
    models: {
      "acme/large": {
        id: "acme/large",
        name: "Large",
        limit: { context: 1000, output: 10 },
        cost: { input, output: 2 },
        modalities: { input: ["text"], output: ["text"] },
      },
    },
  },
});

const outputPath = (): string => join(directory, "facts.json");

function refresh(source: unknown, more: { acceptPriceMoves?: boolean } = {}) {
  const path = join(directory, "source.json");
  writeFileSync(path, typeof source === "string" ? source : JSON.stringify(source));
  return refreshCatalog({
    source: path,
    outputPath: outputPath(),
    acceptPriceMoves: false,
    today: "2026-12-01",
    ...more,
  });
}

const inputPrice = (): string | undefined =>
  catalogFactsSchema
    .parse(JSON.parse(readFileSync(outputPath(), "utf8")))
    .rows.find(({ provider }) => provider === "groq")?.prices?.input;

test("writes the facts and lists what was added", async () => {
  const result = await refresh(sourceWith(1));
  expect(result.ok).toBe(true);
  expect(result.lines[0]).toMatch(/^models\.dev .*, 2026-12-01: \d+ models, \d+ rows$/);
  expect(result.lines).toContain("  groq acme/large");
  expect(inputPrice()).toBe("1");
  expect(readdirSync(directory).toSorted()).toEqual(["facts.json", "source.json"]);
});

test("the same source again changes nothing", async () => {
  await refresh(sourceWith(1));
  const text = readFileSync(outputPath(), "utf8");
  expect((await refresh(sourceWith(1))).lines.slice(1)).toEqual([
    "added: 0",
    "removed: 0",
    "changed: 0",
  ]);
  expect(readFileSync(outputPath(), "utf8")).toBe(text);
});

test("a small price change is accepted", async () => {
  await refresh(sourceWith(1));
  expect((await refresh(sourceWith(1.5))).lines).toContain("changed: 1");
  expect(inputPrice()).toBe("1.5");
});

test("a large price change is refused with its reason, and accepted with acceptPriceMoves", async () => {
  await refresh(sourceWith(1));
  const refused = await refresh(sourceWith(1.6));
  expect(refused.ok).toBe(false);
  expect(refused.lines).toContain("  groq acme/large: input 1 -> 1.6");
  expect(inputPrice()).toBe("1");
  expect((await refresh(sourceWith(1.6), { acceptPriceMoves: true })).ok).toBe(true);
  expect(inputPrice()).toBe("1.6");
});

describe("refuses the source and leaves the file unchanged for", () => {
  test.each<[string, unknown, RegExp]>([
    ["text that is not JSON", "<html>", /^refused: /],
    [
      "an unknown shape",
      { groq: { id: "groq", name: "Groq", models: { m: { id: 1 } } } },
      /models\.m\.id/,
    ],
    ["an empty object", {}, /no providers/],
  ])("%s", async (_, source, reason) => {
    await refresh(sourceWith(1));
    const result = await refresh(source);
    expect(result.ok).toBe(false);
    expect(result.lines.join("\n")).toMatch(reason);
    expect(inputPrice()).toBe("1");
  });

  test("a missing source", async () => {
    const result = await refreshCatalog({
      source: join(directory, "nowhere.json"),
      outputPath: outputPath(),
      acceptPriceMoves: false,
      today: "2026-12-01",
    });
    expect(result.ok).toBe(false);
    expect(existsSync(outputPath())).toBe(false);
  });
});

test("reads from a URL and refuses an error page", async () => {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) =>
      url.endsWith("/api.json")
        ? Response.json(sourceWith(1))
        : new Response("gone", { status: 410 }),
  });
  const from = (path: string) =>
    refreshCatalog({
      source: `http://127.0.0.1:${server.port}${path}`,
      outputPath: outputPath(),
      acceptPriceMoves: false,
      today: "2026-12-01",
    });
  expect((await from("/other")).lines[0]).toContain("410");
  expect((await from("/api.json")).ok).toBe(true);
  expect(inputPrice()).toBe("1");
  await server.stop(true);
});

test("the command writes the file given by --output", () => {
  const path = join(directory, "source.json");
  writeFileSync(path, JSON.stringify(sourceWith(1)));
  const run = Bun.spawnSync([
    process.execPath,
    join(import.meta.dir, "catalog-refresh.ts"),
    path,
    `--output=${outputPath()}`,
  ]);
  expect([run.exitCode, inputPrice()]).toEqual([0, "1"]);
});

test("the command exits with 1 when it refuses", () => {
  const path = join(directory, "bad.json");
  writeFileSync(path, "{}");
  const run = Bun.spawnSync([process.execPath, join(import.meta.dir, "catalog-refresh.ts"), path]);
  expect(run.exitCode).toBe(1);
  expect(run.stderr.toString()).toContain("refused");
});
