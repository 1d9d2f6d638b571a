import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { settings } from "./setting-texts.ts";
import { settingPaths } from "./setting-meanings.ts";

const root = join(import.meta.dir, "..", "..");
const every = settings(readFileSync(join(root, "switchyard.example.yaml"), "utf8"));

describe("the keys of switchyard.yaml", () => {
  test("each have a meaning", () => {
    expect(every.filter(({ text }) => text === "").map(({ path }) => path)).toEqual([]);
  });

  test("are those of the schema", () => {
    const known = new Set(every.map(({ path }) => path));
    expect(settingPaths().filter((path) => !known.has(path))).toEqual([]);
  });

  test("have the default and the example of their own", () => {
    const named = (path: string) => every.find((setting) => setting.path === path);
    expect(named("server.port")).toMatchObject({ standard: "8787", example: "8787" });
    expect(named("stream.keepalive_before_content_s")).toMatchObject({
      standard: "off",
      example: "",
    });
    expect(named("providers[].models[].pricing.speed.<id>.prompt")?.text).toBe(
      "USD per million input tokens.",
    );
  });
});
