import { expect, test } from "bun:test";
import { unlimitedKey } from "../../identity/keys/caller.ts";
import type { Content } from "../../insights/archive/content-insert.ts";
import { keptCharactersMax } from "../../platform/kernel/json/text-keeper.ts";
import type { ToolCaller } from "../mcp-service.ts";
import { keepCall } from "./kept-calls.ts";

const caller = {
  kind: "llm-key",
  key: unlimitedKey({ id: "key_1", workspaceId: "ws_1", creatorUserId: "usr_1" }),
  workspace: { id: "ws_1" },
} as ToolCaller;

/** Keeps a call whose result has a text of some characters, and returns what was stored of it. */
function keptOf(characters: number): Content["answer"] {
  const written: Content[] = [];
  const contents = { keptSinceMs: () => 0, write: (each: Content) => void written.push(each) };
  const result = { content: [{ type: "text" as const, text: "x".repeat(characters) }] };
  const call = { server: "docs", tool: "read", given: {}, surface: "mcp", nowMs: 1 };
  keepCall(contents, { ...call, caller, generationId: "gen_1", result });
  return written[0]?.answer ?? { text: "", isCut: false };
}

test("a result is kept whole up to the limit", () => {
  const overhead = JSON.stringify({ content: [{ type: "text", text: "" }] }).length;
  const kept = keptOf(keptCharactersMax - overhead);
  expect(kept.text).toHaveLength(keptCharactersMax);
  expect(kept.isCut).toBe(false);
});

test("a longer one is still a result, of less text", () => {
  const kept = keptOf(keptCharactersMax);
  expect(kept.isCut).toBe(true);
  expect(kept.text.length).toBeLessThanOrEqual(keptCharactersMax);
  expect(JSON.parse(kept.text)).toMatchObject({ content: [{}, { type: "text" }] });
});
