import type { DialectId } from "../../../src/inference/canonical/dialect-id.ts";
import type { Loss } from "../../../src/inference/canonical/request.ts";
import type { ClientDialect } from "../../../src/inference/dialects/dialect.ts";
import { clientDialects, upstreamDialects } from "../../../src/inference/dialects/index.ts";
import { GatewayError } from "../../../src/platform/kernel/errors.ts";
import type { RequestField } from "./request-fields.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * What becomes of a field: it reaches the provider (as it is or translated), it is named as lost,
 * or the request is refused; `silent` is what must not be.
 */
export type Outcome = "sent" | "named" | "refused" | "silent";

/** A request as one provider would be sent it, or the refusal. */
type Encoded = { text: string; losses: readonly Loss[] } | { refusal: string };

const options = {
  upstreamModel: "model",
  stream: false,
  providerId: "provider",
  deviations: {},
  searches: true,
} as const;

type Decoded = ReturnType<ClientDialect["decodeRequest"]> | GatewayError;

/** The requests that were decoded last, by body: each is encoded for every upstream. */
const lastDecoded = new Map<string, Decoded>();
const decodedMax = 64;

/** Returns a body as it was decoded, as the gateway does for all providers of a request. */
function decoded(client: DialectId, body: Fields): Decoded {
  const key = client + JSON.stringify(body);
  let request = lastDecoded.get(key);
  if (request !== undefined) return request;
  try {
    request = clientDialects[client]?.decodeRequest(body);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    request = error;
  }
  if (request === undefined) throw new Error(`clients do not speak ${client}`);
  lastDecoded.set(key, request);
  if (lastDecoded.size > decodedMax) lastDecoded.delete(lastDecoded.keys().next().value ?? "");
  return request;
}

/** Encodes a request of a client dialect for an upstream of another or of the same one. */
function encode(client: DialectId, upstream: DialectId, body: Fields): Encoded {
  const dialect = clientDialects[client];
  if (dialect === undefined) throw new Error(`clients do not speak ${client}`);
  try {
    if (client === upstream) {
      const text = JSON.stringify(body);
      const request = { dialect: client, text, body, traceId: "0", dialectHeaders: {} };
      const route = { ...options, provider: { id: "provider", deviations: {} } };
      const adapted = dialect.passThrough(
        { ...request, nowSeconds: () => 0 },
        { model: {}, route },
      );
      return { text: adapted.requestText, losses: adapted.losses };
    }
    const request = decoded(client, body);
    if (request instanceof GatewayError) return { refusal: request.message };
    const encoded = upstreamDialects[upstream].encodeRequest(request, options);
    return { text: JSON.stringify(encoded.body), losses: encoded.losses };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { refusal: error.message };
  }
}

const called = { id: "x", name: "x" };
const isResult = (value: unknown): boolean =>
  /"role":"tool"|"type":"(?:tool_result|[a-z_]+_output)"/.test(JSON.stringify(value));

/** The beginning of a conversation in which a result of the call `x` may follow. */
const openings: Partial<Record<DialectId, (given: unknown) => Fields[]>> = {
  "openai-chat": (given) => [
    { role: "user", content: "Hi" },
    ...(isResult(given)
      ? [
          {
            role: "assistant",
            tool_calls: [{ id: "x", type: "function", function: { name: "x", arguments: "{}" } }],
          },
        ]
      : []),
  ],
  "openai-responses": (given) => [
    { role: "user", content: "Hi" },
    ...(isResult(given)
      ? [{ type: "function_call", call_id: "x", name: "x", arguments: "{}" }]
      : []),
  ],
  "anthropic-messages": (given) => [
    { role: "user", content: "Hi" },
    ...(isResult(given)
      ? [{ role: "assistant", content: [{ type: "tool_use", ...called, input: {} }] }]
      : []),
  ],
};

/** A tool that is offered beside a field that needs one. */
const tool: Partial<Record<DialectId, Fields>> = {
  "openai-chat": { type: "function", function: { name: "other" } },
  "openai-responses": { type: "function", name: "other" },
  "anthropic-messages": { name: "other", input_schema: { type: "object" } },
};

/** The user's turn after an answer: a conversation that ends in an answer is one to go on with. */
const closingOf = (given: readonly unknown[]): Fields[] =>
  (given.at(-1) as Fields | undefined)?.["role"] === "assistant"
    ? [{ role: "user", content: "Go on" }]
    : [];

/** Returns a request with what its fields need to mean something: a conversation and a tool. */
function inContext(client: DialectId, body: Fields): Fields {
  const list = client === "openai-responses" ? "input" : "messages";
  const given = Array.isArray(body[list]) ? body[list] : [];
  return {
    ...(client === "anthropic-messages" && { max_tokens: 4096 }),
    ...body,
    model: "model",
    [list]: [...(openings[client]?.(given) ?? []), ...given, ...closingOf(given)],
    ...(body["functions"] === undefined && { tools: body["tools"] ?? [tool[client]] }),
  };
}

const textOf = ({ losses }: { losses: readonly Loss[] }): string =>
  JSON.stringify(losses.map(({ field }) => field));

/** Returns what becomes of a field between two dialects. */
export function outcomeOf(
  field: RequestField,
  { client, upstream }: { client: DialectId; upstream: DialectId },
): Outcome {
  const given = encode(client, upstream, inContext(client, field.with));
  if ("refusal" in given) return "refused";
  const absent = encode(client, upstream, inContext(client, field.without));
  if ("refusal" in absent) return "sent";
  if (textOf(given) !== textOf(absent)) return "named";
  if (given.text !== absent.text) return "sent";
  return given.losses.some((loss) => covers(loss, field)) ? "named" : "silent";
}

/** Returns a path without places in lists and without the names of variants. */
const plain = (path: string): string => path.replace(/\[[^\]]*\]/g, "");

/** Returns whether a loss names something that contains the field. */
function covers({ field: lost }: Loss, { path }: RequestField): boolean {
  const whole = plain(lost);
  const own = plain(path);
  return [own, ...aliases.map(([from, to]) => own.replace(from, to))].some(
    (alias) => alias === whole || alias.startsWith(`${whole}.`),
  );
}

/** Names under which losses name what stands elsewhere. */
const aliases: readonly (readonly [from: RegExp, to: string])[] = [
  // Tools that a conversation defines are tools, and a marker is named once for all.
  [/^.*?\.tools\b/, "tools"],
  [/^.*?\b(?:cache_control|prompt_cache_breakpoint)\b/, "cache_control"],
  [/^messages\.reasoning_details/, "messages.content"],
  [/^text\.format/, "response_format"],
  [/json_schema\./, ""],
  [/^thinking/, "reasoning"],
  // A document of parts, and a search result, have their parts as a source.
  [/\.source\.content/, ".source"],
  [/\.content(\.[a-z]+)$/, ".source$1"],
];
