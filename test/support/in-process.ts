import type { DialectId } from "../../src/inference/canonical/dialect-id.ts";
import { readWhole } from "../../src/inference/pipeline/attempt.ts";
import { buildCatalog } from "../../src/inference/catalog/build-catalog.ts";
import { checkMessagesRequest } from "../../src/inference/dialects/anthropic-messages/request-schema.ts";
import { checkGenerateRequest } from "../../src/inference/dialects/google-generate/request-schema.ts";
import { checkChatRequest } from "../../src/inference/dialects/openai-chat/request-schema.ts";
import { checkResponsesRequest } from "../../src/inference/dialects/openai-responses/request-schema.ts";
import type {
  ClientRequest,
  Adapter,
  AdaptedRoute,
} from "../../src/inference/pipeline/inference-call.ts";
import { CallSignatures } from "../../src/inference/pipeline/stream/call-signatures.ts";
import { clientDialects } from "../../src/inference/dialects/index.ts";
import type { WholeAnswer } from "../../src/inference/dialects/shared/exchange.ts";
import { adapt } from "../../src/inference/pipeline/adapt.ts";
import {
  RelayedStream,
  type RelayedStreamOptions,
  type StreamEnd,
} from "../../src/inference/pipeline/stream/relayed-stream.ts";
import { KeepAliveTicker } from "../../src/inference/pipeline/stream/keep-alive-ticker.ts";
import { asGatewayError } from "../../src/http/error-envelope.ts";
import type { AttemptFailure } from "../../src/inference/upstream/upstream-failure.ts";
import type { UpstreamResponse } from "../../src/inference/upstream/upstream-client.ts";
import { GatewayError } from "../../src/platform/kernel/errors.ts";
import { provider } from "./gateway.ts";
import { noFacts } from "./no-facts.ts";

type Body = Readonly<Record<string, unknown>>;

const validators: Partial<Record<DialectId, (body: Body) => void>> = {
  "openai-chat": checkChatRequest,
  "anthropic-messages": checkMessagesRequest,
  "openai-responses": checkResponsesRequest,
  "google-generate": checkGenerateRequest,
};

/**
 * Returns a route to a model of a provider that speaks this dialect, as the catalog would hold it.
 */
export function routeIn(dialect: DialectId): AdaptedRoute {
  const configured = provider({
    id: "acme",
    dialect,
    base_url: "http://127.0.0.1:1/v1",
    api_key: "k",
    models: [
      {
        id: "acme/large",
        upstream_model: "large-v2",
        context_length: 131_072,
        max_completion_tokens: 8_192,
      },
    ],
  });
  const { models } = buildCatalog({
    environment: {},
    configuredProviders: [configured],
    nowMs: 0,
    facts: noFacts,
  });
  const model = models.get("acme/large");
  const [route] = model?.routes ?? [];
  if (model === undefined || route === undefined) throw new Error("the catalog has no such model");
  return { model, route };
}

/** Returns a validated request as its route reads it. Throws `GatewayError`. */
export function requestIn(dialect: DialectId, body: Body): ClientRequest {
  validators[dialect]?.(body);
  let canonical: ReturnType<ClientRequest["canonical"]> | undefined;
  return {
    dialect,
    body,
    text: JSON.stringify(body),
    traceId: "0123456789abcdef0123456789abcdef",
    dialectHeaders: {},
    signatures: new CallSignatures().of("workspace"),
    nowSeconds: () => 1_763_700_000,
    canonical: () => (canonical ??= decodeIn(dialect, body)),
  };
}

function decodeIn(dialect: DialectId, body: Body): ReturnType<ClientRequest["canonical"]> {
  const client = clientDialects[dialect];
  if (client === undefined) throw new Error(`clients do not speak ${dialect}`);
  return client.decodeRequest(body);
}

/**
 * Adapts a client's request to an upstream, without sockets, ledger or clock. Throws
 * `GatewayError`.
 */
export const adaptIn = (
  dialect: DialectId,
  { body, route }: { body: Body; route: AdaptedRoute },
): Adapter => adapt(requestIn(dialect, body), route);

/** The result of a stream that was relayed without sockets. */
export interface Relayed {
  /** The client's bytes; empty where the stream failed before its first content. */
  text: string;
  /** How the stream was settled; undefined where it was not. */
  settled: StreamEnd | undefined;
  /** The code of the failure before the first content. */
  refused: string | undefined;
}

const relayFacts = {
  shown: { id: "answer_1", model: "acme/large" },
  inputTokens: 5,
  windowTokens: 131_072,
  fallback: undefined,
};

/** Returns the frame that keeps a client's stream open. */
export const pingIn = (adapter: Adapter): string =>
  adapter.createRelay({
    ...relayFacts,
    settle: () => Promise.reject(new Error("nothing is settled")),
    metadataText: () => "{}",
  }).pingFrame;

const settlement = {
  chargedNano: 16_000n,
  uncollectedNano: 0n,
  heldNano: 0n,
  balanceAfterNano: 1n,
  settledMs: 0,
  free: false,
  isByok: false,
};

const keepAlive = new KeepAliveTicker(() => performance.now());
keepAlive.stop();

/**
 * Relays an upstream's bytes to a client; `guard` decides for each event whether it is paid for.
 */
export async function relayIn(
  adapter: Adapter,
  chunks: readonly Uint8Array[],
  guard?: RelayedStreamOptions["guard"],
): Promise<Relayed> {
  let settled: StreamEnd | undefined;
  const options: RelayedStreamOptions = {
    response: answerOf(chunks),
    decoder: undefined,
    drainOnCancel: false,
    keepAlive,
    guard,
    onFirstContent: () => undefined,
    settle(_, { status }) {
      settled = status;
      return Promise.resolve(settlement);
    },
    metadataText: () => '{"timings":{}}',
    asError: (failure) =>
      failure instanceof Error
        ? asGatewayError(failure)
        : new GatewayError("bad_gateway", "The stream broke."),
    onClosed: () => undefined,
  };
  const stream = new RelayedStream(options, (services) =>
    adapter.createRelay({ ...services, ...relayFacts }),
  );
  const failure = await stream.prime();
  if (failure !== undefined) return { text: "", settled, refused: failure.code };
  let text = "";
  for (let frames = await stream.next(); frames !== undefined; frames = await stream.next())
    text += frames;
  keepAlive.stop();
  return { text, settled, refused: undefined };
}

/** A whole answer as the client gets it, or the failure that it counts as. */
export type ReadWhole =
  | { ok: true; text: string; metered: WholeAnswer["metered"] }
  | { ok: false; failure: AttemptFailure };

/** Reads an upstream's whole answer and writes the client's. */
export async function readIn(adapter: Adapter, text: string): Promise<ReadWhole> {
  const read = await readWhole({ ...answerOf([]), readText: () => Promise.resolve(text) }, adapter);
  if (!read.ok) return read;
  const { metered = { usage: {}, estimated: true, clamped: false } } = read.answer;
  const shown = {
    id: "answer_1",
    model: "acme/large",
    metered,
    chargedNano: 16_000n,
    fallback: undefined,
    metadataText: () => "{}",
  };
  return { ok: true, text: read.answer.render(shown), metered: read.answer.metered };
}

function answerOf(chunks: readonly Uint8Array[]): UpstreamResponse {
  const left = [...chunks];
  return {
    status: 200,
    headers: { "content-type": "text/event-stream" },
    next: () => left.shift(),
    readText: () => Promise.resolve(Buffer.concat(left).toString("utf8")),
    expectMore: () => undefined,
    expectEnd: () => undefined,
    abort: () => undefined,
  };
}
