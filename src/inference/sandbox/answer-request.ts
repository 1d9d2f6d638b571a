import type { Clock } from "../../platform/kernel/clock.ts";
import {
  InvalidRequestError,
  choiceTokens,
  clientGone,
  cutConnection,
  play,
  waitMs,
  type SandboxDialect,
  type RequestTarget,
  type UnderstoodRequest,
  type Refusal,
  type SimulatedReply,
} from "./dialect.ts";
import { readDirectives, type Directives } from "./directives.ts";
import { sandboxModels } from "./sandbox-models.ts";
import {
  anthropicCountTokens,
  anthropicMessages,
  openaiChat,
  openaiResponses,
} from "./wire/client-dialects.ts";
import {
  decisions,
  documentsParse,
  moderations,
  openaiError,
  rerank,
  embeddings,
  type PlainSurface,
} from "./wire/plain-surfaces.ts";
import { mediaHandlers } from "./wire/media-surfaces.ts";
import { googleGenerate } from "./wire/google-generate.ts";
import { completePrompt } from "./prompt.ts";
import { simulate } from "./simulate.ts";
import { z } from "zod";
import { GatewayError } from "../../platform/kernel/errors.ts";

type Refuser = Pick<SandboxDialect, "refusal">;

type Understood<Request> =
  | { ok: true; request: Request }
  | { ok: false; status: number; message: string };

/** Parses a body and passes it to a reader, whose refusals become a 400. */
function understand<Request>(
  bodyText: string,
  read: (body: unknown) => Request,
): Understood<Request> {
  try {
    return { ok: true, request: read(JSON.parse(bodyText)) };
  } catch (error) {
    return { ok: false, status: 400, message: reasonOf(error) };
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) {
    const [issue] = error.issues;
    return `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "invalid"}`;
  }
  const refused = [InvalidRequestError, GatewayError, SyntaxError];
  if (error instanceof Error && refused.some((kind) => error instanceof kind)) return error.message;
  throw error;
}

/** Delays and refuses as the directives say; undefined when the request is to be answered. */
async function obeyBeforeAnswer(
  directives: Directives,
  { dialect, requestId, signal }: { dialect: Refuser; requestId: string; signal: AbortSignal },
): Promise<Response | undefined> {
  const { delay_ms: delayMs, status, retry_after: retryAfterSeconds } = directives;
  if (delayMs) await waitMs(delayMs, signal);
  if (status === undefined || status < 400) return undefined;
  const headers =
    retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
  const message = `Refused with ${status}, as a sandbox directive asked.`;
  return refuse(dialect, { status, message, requestId }, headers);
}

/** Returns a refusal in the dialect's form. */
function refuse(
  dialect: Refuser,
  refusal: Refusal,
  headers: Record<string, string> = {},
): Response {
  return Response.json(dialect.refusal(refusal), { status: refusal.status, headers });
}

/** Returns 16 hexadecimal digits derived from the bytes of a request. */
const seedOf = (bodyText: string): string => Bun.hash(bodyText).toString(16).padStart(16, "0");

/** Answers one request as the simulated upstream. */
export type AnswerRequest = (request: Request) => Promise<Response>;

type Handler = (request: Request, path: string) => Promise<Response>;

const googleModelsPath = "/v1beta/models/";

/** Creates the function that answers every request of a sandbox. */
export function requestAnswerer(clock: Clock): AnswerRequest {
  const generate =
    (dialect: SandboxDialect): Handler =>
    (request) =>
      generateFrom(request, { dialect, clock, path: { model: "", action: "" } });
  const plain =
    (surface: PlainSurface): Handler =>
    async (request) =>
      answerPlain(surface, await request.text(), request);
  const google: Handler = (request, path) =>
    generateFrom(request, {
      dialect: googleGenerate,
      clock,
      path: splitVerb(decodeURIComponent(path.slice(googleModelsPath.length))),
    });
  const handlers: Readonly<Record<string, Handler>> = {
    "GET /v1/models": async () => Response.json(modelList),
    "POST /v1/chat/completions": generate(openaiChat),
    "POST /v1/responses": generate(openaiResponses),
    "POST /v1/messages": generate(anthropicMessages),
    "POST /v1/messages/count_tokens": plain(anthropicCountTokens),
    "POST /v1/embeddings": plain(embeddings),
    "POST /v1/rerank": plain(rerank),
    "POST /v1/moderations": plain(moderations),
    "POST /v1/documents/parse": plain(documentsParse),
    "POST /v1/decisions": plain(decisions),
    ...mediaHandlers,
  };
  return async (request) => {
    const { pathname } = new URL(request.url);
    const isGoogle = request.method === "POST" && pathname.startsWith(googleModelsPath);
    const handle = isGoogle ? google : handlers[`${request.method} ${pathname}`];
    return handle === undefined ? notFound(pathname) : handle(request, pathname);
  };
}

/**
 * Answers a request of a surface without conversation; of the directives, only delays and refusals
 * apply.
 */
async function answerPlain(
  surface: PlainSurface,
  bodyText: string,
  { signal }: { signal: AbortSignal },
): Promise<Response> {
  const seed = seedOf(bodyText);
  const understood = understand(bodyText, surface.read);
  if (!understood.ok) return refuse(surface, { ...understood, requestId: seed });
  const { request } = understood;
  const directives = readDirectives(request.text);
  const refused = await obeyBeforeAnswer(directives, { dialect: surface, requestId: seed, signal });
  return refused ?? Response.json(request.answer(seed));
}

interface Generation {
  dialect: SandboxDialect;
  clock: Clock;
  path: { model: string; action: string };
}

async function generateFrom(
  request: Request,
  { dialect, clock, path }: Generation,
): Promise<Response> {
  return answerGeneration(dialect, {
    bodyText: await request.text(),
    target: {
      pathModel: path.model,
      pathAction: path.action,
      query: new URL(request.url).searchParams,
    },
    signal: request.signal,
    createdAtSeconds: Math.floor(clock.nowMs() / 1000),
  });
}

/**
 * Splits the end of Google's paths, which names the model and, after a colon, the action; model
 * names contain colons too.
 */
function splitVerb(verb: string): Generation["path"] {
  const colon = verb.lastIndexOf(":");
  return colon === -1
    ? { model: verb, action: "" }
    : { model: verb.slice(0, colon), action: verb.slice(colon + 1) };
}

const modelList = {
  object: "list",
  data: sandboxModels.map((model) => ({
    id: model.upstream_model,
    object: "model",
    created: 0,
    owned_by: "sandbox",
  })),
};

function notFound(path: string): Response {
  const message = `The sandbox has no ${path}.`;
  return Response.json(openaiError({ status: 404, message, requestId: "sandbox" }), {
    status: 404,
  });
}

/** An HTTP request as the sandbox processes it. */
interface Incoming {
  bodyText: string;
  target: RequestTarget;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
  createdAtSeconds: number;
}

/**
 * Answers a generation request in its dialect: whole or streamed, refused or broken off as
 * directed.
 */
async function answerGeneration(dialect: SandboxDialect, incoming: Incoming): Promise<Response> {
  const { bodyText, target, signal, createdAtSeconds } = incoming;
  const seed = seedOf(bodyText);
  const understood = understand(bodyText, (body) => dialect.read(body, target));
  if (!understood.ok) return refuse(dialect, { ...understood, requestId: seed });
  const { request } = understood;
  const prompt = completePrompt(request.prompt, { seed, createdAtSeconds });
  const refused = await obeyBeforeAnswer(prompt.directives, { dialect, requestId: seed, signal });
  if (refused) return refused;
  const reply = simulate(prompt);
  return request.stream ? streamed(request, { reply, signal }) : whole(request, { reply, signal });
}

interface Answering {
  reply: SimulatedReply;
  signal: AbortSignal;
}

function streamed(request: UnderstoodRequest, { reply, signal }: Answering): Response {
  const events = play(request.events(reply), {
    directives: reply.directives,
    signal,
    failure: (sentCount) => request.failure(reply, sentCount),
  });
  // Bun accepts an async iterable as a body and asks it for the next piece as the client reads.
  return new Response(events, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
  });
}

async function whole(request: UnderstoodRequest, { reply, signal }: Answering): Promise<Response> {
  const {
    token_delay_ms: tokenDelayMs,
    stall_after: stallAfter,
    cut_after: cutAfter,
  } = reply.directives;
  const tokenCount = reply.choices.reduce((sum, choice) => sum + choiceTokens(choice).length, 0);
  if (tokenDelayMs) await waitMs(tokenDelayMs * tokenCount, signal);
  if (stallAfter !== undefined) await clientGone(signal);
  const body = JSON.stringify(request.whole(reply));
  const headers = { "content-type": "application/json" };
  return new Response(cutAfter === undefined ? body : firstHalf(body), { headers });
}

/** Yields the first half of a body, then resets the connection. */
async function* firstHalf(body: string): AsyncGenerator<string> {
  yield body.slice(0, body.length / 2);
  await cutConnection();
}
