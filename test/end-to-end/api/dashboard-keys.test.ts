import { expect, test } from "bun:test";
import { inferenceEndpoints } from "../../../src/endpoints/keys/inference-endpoints.ts";
import { endpoints } from "../../../src/endpoints/index.ts";

/**
 * Tags of routes of the account that LLM keys may call, and that keys made by people do not call at
 * first.
 */
const accountTags = new Set(["Account", "Key minting", "MCP"]);

test("new dashboard keys allow every endpoint open to LLM keys, except those of the account", () => {
  const open = endpoints
    .filter(({ access, tag }) => access.llmKey && !accountTags.has(tag))
    .map(({ path }) => path);
  expect([...new Set(open)].filter((path) => !inferenceEndpoints.includes(path))).toEqual([]);
  const account = endpoints.filter(({ tag }) => accountTags.has(tag)).map(({ path }) => path);
  expect(account.filter((path) => inferenceEndpoints.includes(path))).toEqual([]);
});
