import { expect, test } from "bun:test";
import { inferenceEndpoints } from "../../../src/endpoints/keys/keys.ts";
import { endpoints } from "../../../src/endpoints/index.ts";

/**
 * Tags of routes of the account that LLM keys may call, and that keys made by people do not call at
 * first.
 */
const accountTags = new Set(["Account", "Key minting", "MCP"]);

test("a key that somebody makes begins with every endpoint that is open to LLM keys, but for those of the account", () => {
  const open = endpoints
    .filter(({ access, tag }) => access.llmKey && !accountTags.has(tag))
    .map(({ path }) => path);
  expect([...new Set(open)].filter((path) => !inferenceEndpoints.includes(path))).toEqual([]);
  const account = endpoints.filter(({ tag }) => accountTags.has(tag)).map(({ path }) => path);
  expect(account.filter((path) => inferenceEndpoints.includes(path))).toEqual([]);
});
