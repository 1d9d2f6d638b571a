import { brand } from "../../platform/lib/brand.ts";
import type { Clock } from "../../platform/lib/clock.ts";
import { newId, randomBase62 } from "../../platform/lib/ids.ts";
import type { CredentialDirectory } from "./credential-directory.ts";
import { maskSecret, type LlmKey } from "./llm-key.ts";
import type { LlmKeyStore } from "./llm-key-store.ts";
import type { SecretHasher } from "./secret-hasher.ts";

/** Characters of a minted secret behind its prefix: 43 of 62 are more than 256 bits. */
const secretLength = 43;

/** What a new key is made of; everything else has the gateway's default. */
export type NewLlmKey = Pick<LlmKey, "workspaceId" | "name" | "creatorUserId"> & Partial<Omit<LlmKey, "id" | "hash" | "label">>;

/** Makes LLM keys. The secret exists in the answer of `mint` and nowhere else. */
export class LlmKeyMinter {
  private readonly store: LlmKeyStore;
  private readonly directory: CredentialDirectory;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;
  private newestMs = 0;

  constructor(options: { store: LlmKeyStore; directory: CredentialDirectory; hasher: SecretHasher; clock: Clock }) {
    this.store = options.store;
    this.directory = options.directory;
    this.hasher = options.hasher;
    this.clock = options.clock;
  }

  /** Stores a new key and puts it in force. `secret` is given only where automation brings its own. */
  async mint(wanted: NewLlmKey, secret = brand.llmKeyPrefix + randomBase62(secretLength)): Promise<{ secret: string; key: LlmKey }> {
    // No two keys have the same millisecond, so that lists by age have one order.
    const nowMs = Math.max(this.clock.nowMs(), this.newestMs + 1);
    this.newestMs = nowMs;
    const key: LlmKey = {
      createdAtMs: nowMs, updatedAtMs: null, expiresAtMs: null, disabled: false, limitNanoUsd: null, limitReset: null,
      includeByokInLimit: false, rateLimitPerMinute: null, tokensPerMinute: null, allowedModels: null, allowedEndpoints: null,
      ...wanted,
      id: newId("key", nowMs),
      hash: this.hasher.hash(secret),
      label: maskSecret(secret, brand.llmKeyPrefix),
    };
    await this.store.insert(key);
    this.directory.putLlmKey(key);
    return { secret, key };
  }
}
