import { brand } from "../../platform/kernel/brand.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { CredentialDirectory } from "./credential-directory.ts";
import { maskSecret, newSecret, type SecretHasher } from "./secret-hasher.ts";
import type { LlmKeyStore, LlmKey, LlmKeyChanges, OperatorRights } from "./llm-key-store.ts";

/** A key as its own workspace names it. */
export interface LlmKeyReference {
  workspaceId: string;
  /** The hash, as in paths. */
  hash: string;
}

const noKey = (): GatewayError =>
  new GatewayError("not_found", "There is no LLM key with this hash. GET /keys lists them.");

const rotatedMeanwhile = (): GatewayError =>
  new GatewayError(
    "conflict",
    "This key was rotated by another request meanwhile. GET /keys tells its new hash.",
  );

/** Milliseconds after a rotation in which requests count as sent before its answer was read. */
const simultaneousMs = 1_000;

/**
 * Changes, rotates and deletes LLM keys, one write of a key at a time. The directory takes over
 * what the database returned in the same turn of the event loop, so that a change is in force when
 * it is answered.
 */
export class LlmKeyEditor {
  private readonly store: LlmKeyStore;
  private readonly directory: CredentialDirectory;
  private readonly hasher: SecretHasher;
  private readonly clock: Clock;
  private readonly mutex = new KeyedMutex();
  /**
   * Hashes that were replaced by a rotation, with the time until which requests with them count as
   * simultaneous.
   */
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

  /** Returns the key with this hash. Throws `not_found`, also for keys of other workspaces. */
  find({ workspaceId, hash }: LlmKeyReference): LlmKey {
    const key = this.directory.llmKeyByHash(hash);
    if (key === undefined || key.workspaceId !== workspaceId) throw noKey();
    return key;
  }

  /**
   * Changes some fields. The key loses an operator's rights unless `rights` says otherwise. Throws
   * `not_found`, and `conflict` where rights are given to a secret that was replaced meanwhile.
   */
  change(
    reference: LlmKeyReference,
    changes: LlmKeyChanges,
    rights?: OperatorRights,
  ): Promise<LlmKey> {
    return this.write(reference, async ({ id }) => {
      const key = await this.store.change(id, { changes, nowMs: this.clock.nowMs(), rights });
      if (key === undefined)
        throw rights !== undefined && "gives" in rights ? rotatedMeanwhile() : noKey();
      this.directory.putLlmKey(key);
      return key;
    });
  }

  /**
   * Replaces the secret of a key. The old one is refused when this resolves, or accepted until
   * `previousUntilMs`. `tokenExpiresAtMs` is the expiry of a connected app's secret, and
   * `holderUserId` the person to whose session the new secret is shown. The key loses an operator's
   * rights. Throws `not_found`, and `conflict` for all but one of several concurrent rotations.
   */
  rotate(
    reference: LlmKeyReference,
    {
      tokenExpiresAtMs,
      previousUntilMs,
      holderUserId,
    }: {
      tokenExpiresAtMs?: number;
      previousUntilMs?: number;
      holderUserId?: string | undefined;
    } = {},
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
              holderUserId,
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
   * Returns whether the hash was replaced by a rotation a moment ago, so that this request counts
   * as simultaneous with it.
   */
  private wasRotatedNow({ hash, workspaceId }: LlmKeyReference): boolean {
    return this.clock.monotonicMs() < (this.rotatedUntilMs.get(`${workspaceId} ${hash}`) ?? 0);
  }

  /** Deletes a key softly and returns its id; it is refused from now on. Throws `not_found`. */
  remove(reference: LlmKeyReference): Promise<string> {
    return this.write(reference, async ({ id }) => {
      await this.store.remove(id, this.clock.nowMs());
      this.directory.remove(id);
      return id;
    });
  }

  /** Runs a write after those before it, on the key as they left it. */
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
   * Reads the key from the database, since another gateway may have changed it a moment ago.
   * Undefined where it was deleted.
   */
  current(id: string): Promise<LlmKey | undefined> {
    return this.mutex.run(id, async () => {
      await this.catchUp(id);
      return this.directory.llmKeyById(id);
    });
  }

  /**
   * Reads the key of a secret from the database, such as one that another gateway has just created;
   * undefined where there is none.
   */
  async currentOf(secret: string): Promise<LlmKey | undefined> {
    const id = await this.store.idOfHash(this.hasher.hash(secret));
    return id === undefined ? undefined : this.current(id);
  }

  /**
   * Brings memory in line with the database after a failed write, which may have happened where the
   * connection broke.
   */
  private async catchUp(id: string): Promise<void> {
    const key = await this.store.find(id).catch(() => "unknown" as const);
    if (key === "unknown") return;
    if (key === undefined) this.directory.remove(id);
    else this.directory.putLlmKey(key);
  }
}

/** The fields of a new key. All other fields have the gateway's defaults. */
export type NewLlmKey = Pick<LlmKey, "workspaceId" | "name" | "creatorUserId"> &
  Partial<Omit<LlmKey, "id" | "hash" | "label">>;
