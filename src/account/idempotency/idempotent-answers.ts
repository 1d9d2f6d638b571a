import type { Kysely } from "kysely";
import { z } from "zod";
import { dayMs, type Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { KeyVault } from "../byok/key-vault.ts";
import type { SecretHasher } from "../keys/secret-hasher.ts";
import {
  IdempotentRequestStore,
  type IdempotencyTables,
  type RequestName,
} from "./idempotent-request-store.ts";

/** How long an answer is given again, as Stripe does at least. */
export const idempotencyKeptMs = dayMs;

/** A request that has no answer after so long was cut off: its gateway ended while it worked. */
const underWayMs = 60_000;

/** A request that names itself. */
export interface IdempotentRequest {
  workspaceId: string;
  /** Id of the credential or the person that asks: keys of others mean other requests. */
  actorId: string;
  /** The client's name for it. */
  key: string;
  /** Method, path and body: what the name must always mean. */
  content: string;
}

const answerSchema = z.object({
  status: z.int(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
});

/** An answer without what belongs to one request alone, such as its trace id. */
export type KeptAnswer = z.infer<typeof answerSchema>;

const conflict = (message: string, retryAfterSeconds?: number): GatewayError =>
  new GatewayError("conflict", message, {
    param: "Idempotency-Key",
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });

/** Errors that say that nothing was done, so that the same request may be sent again under the same key. */
const saysNothingWasDone = (error: unknown): boolean =>
  error instanceof GatewayError && error.code !== "internal_server_error";

/**
 * Does the work of a request once for each idempotency key, and gives the answer again to those that repeat it within 24 hours,
 * on whichever gateway they ask. Answers are sealed under the workspace's data key, since some show a secret.
 */
export class IdempotentAnswers {
  private readonly parts: {
    store: IdempotentRequestStore;
    vault: KeyVault;
    hasher: SecretHasher;
    clock: Clock;
  };
  /** Requests under way on this gateway, by row; those that repeat one wait for it. */
  private readonly underWay = new Map<string, Promise<void>>();

  constructor(parts: {
    store: IdempotentRequestStore;
    vault: KeyVault;
    hasher: SecretHasher;
    clock: Clock;
  }) {
    this.parts = parts;
  }

  /**
   * The answer of the first request with this key, which does the work. Throws `conflict` where the key named another request, or
   * one that is under way elsewhere or was cut off. Errors of the work that say that nothing was done free the key.
   */
  async answer(
    request: IdempotentRequest,
    work: () => Promise<KeptAnswer>,
    onError: (error: unknown) => void,
  ): Promise<{ answer: KeptAnswer; replayed: boolean }> {
    const { hasher } = this.parts;
    const name = {
      workspace_id: request.workspaceId,
      actor_id: request.actorId,
      key_hash: hasher.hash(`idempotency ${request.key}`),
    };
    const fingerprint = hasher.hash(`request ${request.content}`);
    const local = `${name.workspace_id} ${name.actor_id} ${name.key_hash}`;
    for (
      let other = this.underWay.get(local);
      other !== undefined;
      other = this.underWay.get(local)
    )
      await other;
    const turn = Promise.withResolvers<void>();
    this.underWay.set(local, turn.promise);
    try {
      const known = await this.start(name, fingerprint);
      if (known !== undefined) return { answer: known, replayed: true };
      return { answer: await this.firstAnswer(name, work, onError), replayed: false };
    } finally {
      this.underWay.delete(local);
      turn.resolve();
    }
  }

  /** Forgets requests that are older than their answers are kept. */
  async forgetOld(): Promise<void> {
    await this.parts.store.removeOlder(this.parts.clock.nowMs() - idempotencyKeptMs);
  }

  /** Claims the key, which gives undefined, or finds what was answered under it. */
  private async start(name: RequestName, fingerprint: string): Promise<KeptAnswer | undefined> {
    const { store, clock } = this.parts;
    const nowMs = clock.nowMs();
    if (await store.start({ ...name, fingerprint, started_at_ms: nowMs })) return undefined;
    await store.remove(name, nowMs - idempotencyKeptMs);
    const row = await store.find(name);
    if (row === undefined) {
      if (await store.start({ ...name, fingerprint, started_at_ms: nowMs })) return undefined;
      throw conflict("Another request with this Idempotency-Key is under way.", 1);
    }
    if (row.fingerprint !== fingerprint) {
      throw conflict(
        "This Idempotency-Key was sent with another request. Use a new key for each request that is not a repetition.",
      );
    }
    if (row.answer !== null) return this.opened(name, row.answer);
    if (row.state === "started" && nowMs - row.started_at_ms < underWayMs) {
      throw conflict("Another request with this Idempotency-Key is under way.", 1);
    }
    throw conflict(
      "The first request with this Idempotency-Key was cut off, and it is not known whether it was done. " +
        "List what is there, and use a new key if it was not.",
    );
  }

  private async firstAnswer(
    name: RequestName,
    work: () => Promise<KeptAnswer>,
    onError: (error: unknown) => void,
  ): Promise<KeptAnswer> {
    const { store } = this.parts;
    let answer: KeptAnswer;
    try {
      answer = await work();
    } catch (error) {
      await (saysNothingWasDone(error)
        ? store.remove(name)
        : store.end(name, { state: "unknown", answer: null })
      ).catch(onError);
      throw error;
    }
    // What was done is told in any case; without its answer the key is refused from now on.
    await this.sealed(name, answer)
      .then((sealed) => store.end(name, { state: "answered", answer: sealed }))
      .catch(onError);
    return answer;
  }

  private sealed(name: RequestName, answer: KeptAnswer): Promise<string> {
    return this.parts.vault.seal(placeOf(name), JSON.stringify(answer));
  }

  private async opened(name: RequestName, sealed: string): Promise<KeptAnswer> {
    await this.parts.vault.learn(name.workspace_id);
    return answerSchema.parse(JSON.parse(this.parts.vault.open(placeOf(name), sealed)));
  }
}

/** Builds them on a database. */
export const openIdempotentAnswers = (
  database: Kysely<IdempotencyTables>,
  parts: { vault: KeyVault; hasher: SecretHasher; clock: Clock },
): IdempotentAnswers =>
  new IdempotentAnswers({ ...parts, store: new IdempotentRequestStore(database) });

/** What a sealed answer is bound to. */
const placeOf = (name: RequestName) => ({
  workspaceId: name.workspace_id,
  providerId: "idempotent-answer",
  id: `${name.actor_id} ${name.key_hash}`,
});
