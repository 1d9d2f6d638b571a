import type { BunRequest } from "bun";
import type { Clock } from "../../platform/lib/clock.ts";
import { answerGeneration } from "./answer-generation.ts";
import { answerPlain } from "./answer-plain.ts";
import type { SandboxDialect } from "./dialect.ts";
import { sandboxModels } from "./sandbox-models.ts";
import { anthropicCountTokens } from "./wire/anthropic-count-tokens.ts";
import { anthropicMessages } from "./wire/anthropic-messages.ts";
import { decisions } from "./wire/decisions.ts";
import { documentsParse } from "./wire/documents-parse.ts";
import { embeddings } from "./wire/embeddings.ts";
import { googleGenerate } from "./wire/google-generate.ts";
import { moderations } from "./wire/moderations.ts";
import { openaiChat } from "./wire/openai-chat.ts";
import { openaiError } from "./wire/openai-error.ts";
import { openaiResponses } from "./wire/openai-responses.ts";
import type { PlainSurface } from "./wire/plain-surface.ts";
import { rerank } from "./wire/rerank.ts";

/** A running sandbox. */
export interface Sandbox {
  port: number;
  /** `http://127.0.0.1:PORT`, without a path. */
  baseUrl: string;
  /** Stops listening and ends what is still being answered. */
  stop(): Promise<void>;
}

/**
 * Starts the simulated upstream: real HTTP on a free loopback port, in every upstream dialect. Its
 * answers depend on nothing but the request; `clock` only dates them. See `directiveTable` for the
 * delays and faults that a prompt can ask for.
 */
export function startSandbox({ clock }: { clock: Clock }): Sandbox {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // Stalled and slow streams are part of the service.
    idleTimeout: 0,
    // A cut is an exception thrown on purpose: Bun is not to print it.
    development: false,
    routes: sandboxRoutes(clock),
    fetch: (request) => notFound(new URL(request.url).pathname),
  });
  const port = server.port ?? 0;
  return { port, baseUrl: `http://127.0.0.1:${port}`, stop: () => server.stop(true) };
}

type Handler = (request: Request) => Promise<Response>;

function sandboxRoutes(clock: Clock) {
  const generate = (dialect: SandboxDialect): { POST: Handler } => ({
    POST: (request) => generateFrom(request, { dialect, clock, path: { model: "", action: "" } }),
  });
  const plain = (surface: PlainSurface): { POST: Handler } => ({
    POST: async (request) => answerPlain(surface, await request.text(), request),
  });
  return {
    "/v1/models": { GET: () => Response.json(modelList) },
    "/v1/chat/completions": generate(openaiChat),
    "/v1/responses": generate(openaiResponses),
    "/v1/messages": generate(anthropicMessages),
    "/v1/messages/count_tokens": plain(anthropicCountTokens),
    "/v1beta/models/:verb": {
      POST: (request: BunRequest<"/v1beta/models/:verb">) =>
        generateFrom(request, {
          dialect: googleGenerate,
          clock,
          path: splitVerb(request.params.verb),
        }),
    },
    "/v1/embeddings": plain(embeddings),
    "/v1/rerank": plain(rerank),
    "/v1/moderations": plain(moderations),
    "/v1/documents/parse": plain(documentsParse),
    "/v1/decisions": plain(decisions),
  };
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
 * Google's paths name the model and, after a colon, what to do with it; model names have colons
 * too.
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
