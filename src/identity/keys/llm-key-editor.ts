import { brand } from "../../platform/kernel/brand.ts";
import { type Clock, DistinctTime } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { CredentialDirectory } from "./credential-directory.ts";
import { newSecret, type SecretHasher } from "./secret-hasher.ts";
import { maskSecret, type LlmKeyStore, type LlmKey, type LlmKeyChanges } from "./llm-key-store.ts";

/** A key as its own workspace names it. */
export interface LlmKeyReference {
  workspaceId: string;
  /** The hash as it stands in paths. */
  hash: string;
}

const noKey = (): GatewayError =>
  new GatewayError("not_found", "There is no LLM key with this hash. GET /keys lists them.");

const rotatedMeanwhile = (): GatewayError =>
  new GatewayError(
    "conflict",
    "This key was rotated by another request meanwhile. GET /keys tells its new hash.",
  );

/** Requests so close to a rotation were sent before its answer was read. */
const simultaneousMs = 1_000;

/**
 * Changes, rotates and deletes LLM keys. A write of a key waits for the one before it, and the
 * directory takes over what the database returned in the same turn of the event loop: what is
 * answered is in force.
 */
export class LlmKeyEditor {
  private readonly store: LlmKeyStore;
  private readonly directory: CredentialDirectory;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;
  private readonly mutex = new KeyedMutex();
  /** Hashes that rotations took away, until when requests with them count as simultaneous. */
  private readonly rotatedUntilMs = new Map<string, number>();

  constructor(options: {
    store: LlmKeyStore;
    directory: CredentialDirectory;
    hasher: SecretHasher;
    clock: Clock;
  }) {
    this.store = options.store;
    this.directory = options.directory;
    this.hasher = options.hasher;
    this.clock = options.clock;
  }

  /** The key with this hash. Throws `not_found`, also for keys of other workspaces. */
  find({ workspaceId, hash }: LlmKeyReference): LlmKey {
    const key = this.directory.llmKeyByHash(hash);
    if (key === undefined || key.workspaceId !== workspaceId) throw noKey();
    return key;
  }

  /** Changes some fields. Throws `not_found`. */
  change(reference: LlmKeyReference, changes: LlmKeyChanges): Promise<LlmKey> {
    return this.write(reference, async ({ id }) => {
      const key = await this.store.change(id, { changes, nowMs: this.clock.nowMs() });
      if (key === undefined) throw noKey();
      this.directory.putLlmKey(key);
      return key;
    });
  }

  /**
   * Gives a key another secret; the old one is dead when this resolves, or accepted until
   * `previousUntilMs`. `tokenExpiresAtMs` is the end of the secret of a connected app. Throws
   * `not_found`, and `conflict` for all but one at a time.
   */
  rotate(
    reference: LlmKeyReference,
    {
      tokenExpiresAtMs,
      previousUntilMs,
    }: { tokenExpiresAtMs?: number; previousUntilMs?: number } = {},
  ): Promise<{ secret: string; key: LlmKey }> {
    if (this.wasRotatedNow(reference)) return Promise.reject(rotatedMeanwhile());
    const prefix =
      this.find(reference).connection === undefined ? brand.llmKeyPrefix : brand.accessTokenPrefix;
    const secret = newSecret(prefix);
    return this.write(reference, async ({ id, hash: current }) => {
      const { hash: oldHash } = reference;
      const key =
        current === oldHash
          ? await this.store.rotate(id, {
              oldHash,
              hash: this.hasher.hash(secret),
              label: maskSecret(secret, prefix),
              nowMs: this.clock.nowMs(),
              tokenExpiresAtMs,
              previousUntilMs,
            })
          : undefined;
      if (key === undefined) throw rotatedMeanwhile();
      this.directory.putLlmKey(key);
      this.noteRotation(reference);
      return { secret, key };
    });
  }

  private noteRotation({ hash, workspaceId }: LlmKeyReference): void {
    const nowMs = this.clock.monotonicMs();
    for (const [name, untilMs] of this.rotatedUntilMs)
      if (untilMs <= nowMs) this.rotatedUntilMs.delete(name);
    this.rotatedUntilMs.set(`${workspaceId} ${hash}`, nowMs + simultaneousMs);
  }

  /**
   * Whether the hash was taken from its key a moment ago: who asks with it now asked at the same
   * time.
   */
  private wasRotatedNow({ hash, workspaceId }: LlmKeyReference): boolean {
    return this.clock.monotonicMs() < (this.rotatedUntilMs.get(`${workspaceId} ${hash}`) ?? 0);
  }

  /** Deletes a key softly and gives its id; it is refused from now on. Throws `not_found`. */
  remove(reference: LlmKeyReference): Promise<string> {
    return this.write(reference, async ({ id }) => {
      await this.store.remove(id, this.clock.nowMs());
      this.directory.remove(id);
      return id;
    });
  }

  /** Does a write once those before it are done, on the key as they left it. */
  private write<Result>(
    reference: LlmKeyReference,
    work: (key: LlmKey) => Promise<Result>,
  ): Promise<Result> {
    const { id } = this.find(reference);
    return this.mutex.run(id, async () => {
      const key = this.directory.llmKeyById(id);
      if (key === undefined) throw noKey();
      try {
        return await work(key);
      } catch (error) {
        if (!(error instanceof GatewayError)) await this.catchUp(id);
        throw error;
      }
    });
  }

  /**
   * The key as the database has it now: another gateway may have changed it a moment ago. Undefined
   * where it was deleted.
   */
  current(id: string): Promise<LlmKey | undefined> {
    return this.mutex.run(id, async () => {
      await this.catchUp(id);
      return this.directory.llmKeyById(id);
    });
  }

  /**
   * The key of a secret as the database has it, such as one that another gateway has just made;
   * undefined where there is none.
   */
  async currentOf(secret: string): Promise<LlmKey | undefined> {
    const id = await this.store.idOfHash(this.hasher.hash(secret));
    return id === undefined ? undefined : this.current(id);
  }

  /**
   * A write whose connection broke may stand all the same: what the database says then is what is
   * in force.
   */
  private async catchUp(id: string): Promise<void> {
    const key = await this.store.find(id).catch(() => "unknown" as const);
    if (key === "unknown") return;
    if (key === undefined) this.directory.remove(id);
    else this.directory.putLlmKey(key);
  }
}

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

  /**
   * Stores a new key and puts it in force. `secret` is given only where automation brings its own.
   */
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
