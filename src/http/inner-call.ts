import { type Endpoint, idempotencyHeader, type RouterGuard } from "./endpoint.ts";
import { asGatewayError } from "./error-envelope.ts";
import type { GatewayError } from "../platform/kernel/errors.ts";
import { BodyMemory } from "./bodies/body-memory.ts";
import {
  type BackgroundWork,
  pathOf,
  type RequestContext,
  type InnerCall,
  type InnerAnswer,
} from "./request-context.ts";
import { type Answer, Reply } from "./reply.ts";
import { type RequestServer, ServedRequest } from "./served-request.ts";

/** Headers that belong to one request and not to its client, in lower case. */
const ownHeaders: ReadonlySet<string> = new Set([
  "content-length",
  "content-encoding",
  "transfer-encoding",
  "anthropic-version",
  idempotencyHeader.toLowerCase(),
]);

function queryText(query: NonNullable<InnerCall["query"]>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined) parameters.append(name, String(each));
  }
  return parameters.size === 0 ? "" : `?${parameters}`;
}

/** Builds the request of an inner call. Its path is the table's, with the parameters filled in. */
export function innerRequest(
  from: ServedRequest,
  { endpoint, params = {}, query = {}, body, idempotencyKey }: InnerCall,
): ServedRequest {
  const [method = "", pattern = ""] = endpoint.split(" ");
  const headers = from.headerEntries().filter(([name]) => !ownHeaders.has(name));
  if (idempotencyKey !== undefined) headers.push([idempotencyHeader, idempotencyKey]);
  const path = pattern.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ""),
  );
  return from.follow(`/api/v1${path}${queryText(query)}`, {
    method,
    headers,
    params,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** Returns the answer as a value. */
export async function innerAnswer(answer: Answer): Promise<InnerAnswer> {
  const isReply = answer instanceof Reply;
  const unwritten = isReply ? answer.unwritten : undefined;
  const headers = isReply ? answer.headers : Object.fromEntries(answer.headers);
  const { status } = answer;
  if (unwritten !== undefined) return { status, headers, body: unwritten.value };
  const text = isReply ? answer.body : await answer.text();
  const isJson =
    typeof text === "string" && headers["content-type"]?.startsWith("application/json");
  return { status, headers, body: isJson ? JSON.parse(text) : text };
}

/** A call of an endpoint for a caller that is not connected. */
export interface BackgroundCall<Caller> {
  /** The method and path of the route table, such as `POST /chat/completions`. */
  endpoint: string;
  caller: Caller;
  /** Headers in lower case. */
  headers: Readonly<Record<string, string>>;
  bodyText: string;
  work: BackgroundWork;
}

/** The answer to a background call, as a client would be sent it. */
export interface BackgroundAnswer {
  status: number;
  traceId: string;
  text: string;
  /** The refusal or failure; undefined for a success. */
  error: GatewayError | undefined;
}

/** The server of requests that came over no connection. Their sizes are bounded before. */
const noServer: RequestServer = {
  server: { requestIP: () => null, timeout: () => undefined },
  bodyMemory: new BodyMemory(Number.POSITIVE_INFINITY),
};

/** Builds the request of a background call. */
export function backgroundRequest({
  endpoint,
  headers,
  bodyText,
}: Pick<BackgroundCall<unknown>, "endpoint" | "headers" | "bodyText">): ServedRequest {
  const [method = "", path = ""] = endpoint.split(" ");
  const request = new Request(`http://localhost/api/v1${path}`, {
    method,
    headers: { "content-type": "application/json", ...headers },
    body: bodyText,
  });
  return new ServedRequest(Object.assign(request, { params: {} }), noServer);
}

/** The parts of the router that a background call is answered with. */
interface BackgroundParts<Caller> {
  endpoint: Endpoint<never>;
  context: RequestContext<unknown, Caller>;
  work(context: RequestContext<unknown, Caller>): Answer | Promise<Answer>;
  guard: Pick<RouterGuard<Caller>, "admitCaller">;
  onError(
    error: GatewayError,
    request: { traceId: string; method: string; path: string; caller: Caller },
  ): void;
}

/** Answers a background call. A refusal is an answer, as it is for clients. */
export async function answerInBackground<Caller>(
  { caller, work: background }: BackgroundCall<Caller>,
  { endpoint, context, work, guard, onError }: BackgroundParts<Caller>,
): Promise<BackgroundAnswer> {
  const { traceId, request } = context;
  context.background = background;
  background.began?.(traceId);
  try {
    await guard.admitCaller(endpoint, context, caller);
    const answer = await work(context);
    return { status: answer.status, traceId, text: await textOf(answer), error: undefined };
  } catch (thrown) {
    const error = asGatewayError(thrown);
    const { method, headers } = request;
    // What is gathered ends with an error by design.
    if (background.leg?.kind !== "gather")
      onError(error, { traceId, method, path: pathOf(request), caller });
    const text = JSON.stringify(endpoint.encodeError(error, { traceId, headers }));
    return { status: error.status, traceId, text, error };
  } finally {
    request.memory.release();
  }
}

/** Returns the text of a whole answer. */
async function textOf(answer: Answer): Promise<string> {
  if (!(answer instanceof Reply)) return answer.text();
  const { body } = answer;
  if (typeof body === "string") return body;
  let text = "";
  for (let frame = await body.next(); frame !== undefined; frame = await body.next()) text += frame;
  return text;
}
