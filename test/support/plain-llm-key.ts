import type { LlmKey } from "../../src/identity/keys/llm-key-store.ts";

/** Returns an LLM key without any limit, unless the changes say otherwise. */
export const plainLlmKey = (changes: Partial<LlmKey> = {}): LlmKey => ({
  id: "key_1",
  hash: "",
  workspaceId: "ws_1",
  name: "",
  label: "",
  createdAtMs: 0,
  updatedAtMs: null,
  expiresAtMs: null,
  disabled: false,
  limitNanoUsd: null,
  limitReset: null,
  includeByokInLimit: false,
  rateLimitPerMinute: null,
  tokensPerMinute: null,
  allowedModels: null,
  allowedEndpoints: null,
  creatorUserId: "",
  ...changes,
});
