import { brand } from "../../platform/lib/brand.ts";
import type { Clock } from "../../platform/lib/clock.ts";
import { newId } from "../../platform/lib/ids.ts";
import { DistinctTime } from "../distinct-time.ts";
import type { CredentialDirectory } from "./credential-directory.ts";
import { maskSecret, type LlmKey } from "./llm-key.ts";
import type { LlmKeyStore } from "./llm-key-store.ts";
import type { SecretHasher } from "./secret-hasher.ts";
import { newSecret } from "./new-secret.ts";

/** What a new key is made of; everything else has the gateway's default. */
export type NewLlmKey = Pick<LlmKey, "workspaceId" | "name" | "creatorUserId"> &
  Partial<Omit<LlmKey, "id" | "hash" | "label">>;

/** Makes LLM keys. The secret exists in the answer of `mint` and nowhere else. */
export class LlmKeyMinter {
  private readonly store: LlmKeyStore;
  private readonly directory: CredentialDirectory;
  private readonly hasher: SecretHasher;
  private readonly time: DistinctTime;

  constructor(options: {
    store: LlmKeyStore;
    directory: CredentialDirectory;
    hasher: SecretHasher;
    clock: Clock;
  }) {
    this.store = options.store;
    this.directory = options.directory;
    this.hasher = options.hasher;
    this.time = new DistinctTime(options.clock);
  }

  /** Stores a new key and puts it in force. `secret` is given only where automation brings its own. */
  async mint(
    wanted: NewLlmKey,
    secret = newSecret(
      wanted.connection === undefined ? brand.llmKeyPrefix : brand.accessTokenPrefix,
    ),
  ): Promise<{ secret: string; key: LlmKey }> {
    const nowMs = this.time.nextMs();
    const key: LlmKey = {
      createdAtMs: nowMs,
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
      ...wanted,
      id: newId("key", nowMs),
      hash: this.hasher.hash(secret),
      label: maskSecret(
        secret,
        wanted.connection === undefined ? brand.llmKeyPrefix : brand.accessTokenPrefix,
      ),
    };
    await this.store.insert(key);
    this.directory.putLlmKey(key);
    return { secret, key };
  }
}
