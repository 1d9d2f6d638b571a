import type { Kysely } from "kysely";
import { z } from "zod";
import { idempotencyHeader, replayedHeader } from "../http/endpoint.ts";
import { type Answer, Reply } from "../http/reply.ts";
import type { RequestContext } from "./define-endpoint.ts";
import type { SecretHasher } from "../identity/keys/secret-hasher.ts";
import { assert } from "../platform/kernel/assert.ts";
import { dayMs, type Clock } from "../platform/kernel/clock.ts";
import { badField, GatewayError } from "../platform/kernel/errors.ts";
import type { KeyVault } from "../platform/vault/key-vault.ts";
import { actorOf } from "./audit/audit-log.ts";

/** Milliseconds for which an answer is repeated: 24 hours, the minimum at Stripe. */
const idempotencyKeptMs = dayMs;

/**
 * Milliseconds after which a request without an answer counts as interrupted: its gateway ended
 * while it worked.
 */
const underWayMs = 60_000;

/** A request with an idempotency key. */
interface IdempotentRequest {
  workspaceId: string;
  /**
   * The id of the credential or the person that asks. Equal keys of different actors name different
   * requests.
   */
  actorId: string;
  /** The idempotency key that the client chose. */
  key: string;
  /** The method, path and body, which must be the same on every use of the key. */
  content: string;
}

const answerSchema = z.object({
  status: z.int(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
});

/** An answer without what belongs to one request alone, such as its trace id. */
type KeptAnswer = z.infer<typeof answerSchema>;

const conflict = (message: string, retryAfterSeconds?: number): GatewayError =>
  new GatewayError("conflict", message, {
    param: "Idempotency-Key",
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });

/**
 * Returns whether an error says that nothing was done, so that the same request may be sent again
 * under the same key.
 */
const saysNothingWasDone = (error: unknown): boolean =>
  error instanceof GatewayError && error.code !== "internal_server_error";

/**
 * Runs a request once for each idempotency key, and repeats its answer for 24 hours, on any
 * gateway. Answers are sealed under the workspace's data key, since some show a secret.
 */
export class IdempotentAnswers {
  /** Requests in progress on this gateway, by row. Repetitions wait for them. */
  private readonly underWay = new Map<string, Promise<void>>();

  constructor(
    private readonly parts: {
      store: IdempotentRequestStore;
      vault: KeyVault;
      hasher: SecretHasher;
      clock: Clock;
    },
  ) {}

  /**
   * Returns the answer of the first request with this key, and runs it where this is the first.
   * Throws `conflict` where the key named another request, or one that is in progress on another
   * gateway or was interrupted. Errors that say that nothing was done free the key.
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

  /** Deletes requests whose answers are no longer repeated. */
  async forgetOld(): Promise<void> {
    await this.parts.store.removeOlder(this.parts.clock.nowMs() - idempotencyKeptMs);
  }

  /** Takes the key, which gives undefined, or finds what was answered under it. */
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
    // The client gets this answer in any case. Where it could not be stored, the key is refused
    // from now on.
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

/** Builds the answers on a database. */
export const openIdempotentAnswers = (
  database: Kysely<IdempotencyTables>,
  parts: { vault: KeyVault; hasher: SecretHasher; clock: Clock },
): IdempotentAnswers =>
  new IdempotentAnswers({ ...parts, store: new IdempotentRequestStore(database) });

/** Returns what a sealed answer is bound to. */
const placeOf = (name: RequestName) => ({
  workspaceId: name.workspace_id,
  providerId: "idempotent-answer",
  id: `${name.actor_id} ${name.key_hash}`,
});

/** Rows of requests with an idempotency key. */
export interface IdempotencyTables {
  idempotent_requests: {
    workspace_id: string;
    /** The id of the credential or the person that asked. */
    actor_id: string;
    /** Keyed hashes of the idempotency key and of the request. */
    key_hash: string;
    fingerprint: string;
    started_at_ms: number;
    state: "started" | "answered" | "unknown";
    /** The sealed answer; null until there is one. */
    answer: string | null;
  };
}

type Row = IdempotencyTables["idempotent_requests"];

/** The columns that identify a row. */
type RequestName = Pick<Row, "workspace_id" | "actor_id" | "key_hash">;

/** Stores requests with an idempotency key. */
class IdempotentRequestStore {
  constructor(private readonly database: Kysely<IdempotencyTables>) {}

  /**
   * Inserts a row. Returns whether this request is the first with its name: exactly one of several
   * concurrent ones is, across all gateways.
   */
  async start(row: RequestName & Pick<Row, "fingerprint" | "started_at_ms">): Promise<boolean> {
    const started = await this.database
      .insertInto("idempotent_requests")
      .values({ ...row, state: "started", answer: null })
      .onConflict((conflict) => conflict.doNothing())
      .returning("key_hash")
      .executeTakeFirst();
    return started !== undefined;
  }

  find({ workspace_id, actor_id, key_hash }: RequestName): Promise<Row | undefined> {
    return this.database
      .selectFrom("idempotent_requests")
      .selectAll()
      .where("workspace_id", "=", workspace_id)
      .where("actor_id", "=", actor_id)
      .where("key_hash", "=", key_hash)
      .executeTakeFirst();
  }

  async end(
    { workspace_id, actor_id, key_hash }: RequestName,
    outcome: Pick<Row, "state" | "answer">,
  ): Promise<void> {
    await this.database
      .updateTable("idempotent_requests")
      .set(outcome)
      .where("workspace_id", "=", workspace_id)
      .where("actor_id", "=", actor_id)
      .where("key_hash", "=", key_hash)
      .execute();
  }

  /** Deletes one row; with `startedBeforeMs`, only if it is older than that. */
  async remove(
    { workspace_id, actor_id, key_hash }: RequestName,
    startedBeforeMs = Number.MAX_SAFE_INTEGER,
  ): Promise<void> {
    await this.database
      .deleteFrom("idempotent_requests")
      .where("workspace_id", "=", workspace_id)
      .where("actor_id", "=", actor_id)
      .where("key_hash", "=", key_hash)
      .where("started_at_ms", "<", startedBeforeMs)
      .execute();
  }

  async removeOlder(startedBeforeMs: number): Promise<void> {
    await this.database
      .deleteFrom("idempotent_requests")
      .where("started_at_ms", "<", startedBeforeMs)
      .execute();
  }
}

/** The headers of an answer that are repeated. All others belong to one request. */
const keptHeaders = ["content-type", "cache-control"];

/**
 * Returns a request's idempotency key; undefined where it has none. Throws `bad_request` for a
 * malformed key.
 */
function keyOf({ request: { headers } }: RequestContext): string | undefined {
  const key = headers.get(idempotencyHeader);
  if (key === null) return undefined;
  if (/^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(key)) return key;
  throw badField(idempotencyHeader, "must be 1 to 255 printable ASCII characters, such as a UUID.");
}

function keptOf(answer: Answer): KeptAnswer {
  assert(
    answer instanceof Reply && typeof answer.body === "string",
    "an endpoint that answers once must answer with a whole text",
  );
  const { status, body } = answer;
  return {
    status,
    body,
    headers: Object.fromEntries(
      Object.entries(answer.headers).filter(([name]) => keptHeaders.includes(name)),
    ),
  };
}

/** The most characters of an answer that is kept to be repeated. */
const keptCharactersMax = 16 * 1024 * 1024;

/** The answer to a repetition of a request whose own answer was too long, or a stream. */
const notKept = (): KeptAnswer => {
  const message =
    "The request with this Idempotency-Key was done and charged, and its answer was a stream or too long to be kept. " +
    "Use a new key for a new request.";
  return {
    status: 409,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ error: { code: "conflict", message, type: "conflict_error" } }),
  };
};

/**
 * Runs a call that makes something, or repeats the answer that an earlier one with the same
 * `Idempotency-Key` got. A stream and a long answer are not repeated: their repetition answers 409.
 * `bodyText` is the body of the request, or a hash of it.
 */
export async function answerOnceFor<Given extends Answer>(
  answers: IdempotentAnswers,
  { context, bodyText }: { context: RequestContext; bodyText: string },
  work: () => Promise<Given>,
): Promise<Given | Reply> {
  if (keyOf(context) === undefined) return work();
  let given: Given | undefined;
  const keep = async (): Promise<Answer> => {
    given = await work();
    const body = given instanceof Reply ? given.body : undefined;
    return typeof body === "string" && body.length <= keptCharactersMax
      ? given
      : new Reply(notKept().body, notKept());
  };
  const answer = await answerOnce(answers, { context, bodyText, onError: () => undefined }, keep);
  return given ?? (answer as Reply);
}

/**
 * Runs an endpoint's handler, or repeats the answer that an earlier request with the same
 * `Idempotency-Key` got.
 */
export async function answerOnce(
  answers: IdempotentAnswers,
  {
    context,
    bodyText,
    onError,
  }: { context: RequestContext; bodyText: string; onError(error: unknown): void },
  work: () => Promise<Answer>,
): Promise<Answer> {
  const key = keyOf(context);
  const { caller, request } = context;
  const actor = actorOf(caller);
  if (key === undefined || actor === undefined || caller.kind === "anonymous") return await work();
  const target = new URL(request.url, "http://localhost");
  // The API answers under two bases, which are equal to clients.
  const path = `${target.pathname.replace(/^\/(?:api\/)?v1(?=\/)/, "")}${target.search}`;
  const named = {
    workspaceId: caller.workspace.id,
    actorId: actor.id,
    key,
    content: `${request.method} ${path} ${bodyText}`,
  };
  let first: Answer | undefined;
  const { answer, replayed } = await answers.answer(
    named,
    async () => keptOf((first = await work())),
    onError,
  );
  if (first !== undefined && !replayed) return first;
  return new Reply(answer.body, {
    status: answer.status,
    headers: { ...answer.headers, ...context.headers, [replayedHeader.toLowerCase()]: "true" },
  });
}
