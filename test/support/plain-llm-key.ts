import { unlimitedKey } from "../../src/identity/keys/caller.ts";
import type { LlmKey } from "../../src/identity/keys/llm-key-store.ts";

/** Returns an LLM key without any limit, unless the changes say otherwise. */
export const plainLlmKey = (changes: Partial<LlmKey> = {}): LlmKey => ({
  ...unlimitedKey({ id: "key_1", workspaceId: "ws_1", creatorUserId: "" }),
  ...changes,
});
