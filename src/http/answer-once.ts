import type { IdempotentAnswers, KeptAnswer } from "../account/idempotency/idempotent-answers.ts";
import { actorOf } from "../account/security/audit-log.ts";
import { assert } from "../platform/lib/assert.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { RequestContext } from "./request-context.ts";
import { Reply, type Answer } from "./reply.ts";

/** The request header, and that of an answer that was given before. */
export const idempotencyHeader = "Idempotency-Key";
export const replayedHeader = "Idempotent-Replayed";

/** Headers of an answer that are given again; the others are about one request. */
const keptHeaders = ["content-type", "cache-control"];

/** The key that a request names itself by; undefined where it does not. Throws `bad_request` where it is no key. */
function keyOf({ request: { headers } }: RequestContext): string | undefined {
  const key = headers.get(idempotencyHeader);
  if (key === null) return undefined;
  if (/^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(key)) return key;
  throw new GatewayError(
    "bad_request",
    `${idempotencyHeader}: must be 1 to 255 printable ASCII characters, such as a UUID.`,
    {
      param: idempotencyHeader,
    },
  );
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

/** Does the work of an endpoint, or gives the answer again that an earlier request with the same `Idempotency-Key` got. */
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
  // The API answers under two bases, which are the same to clients.
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
