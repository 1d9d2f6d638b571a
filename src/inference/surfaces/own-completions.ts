import type { JsonObject, JsonValue } from "../canonical/json.ts";
import type { Loss } from "../canonical/request.ts";
import { chatGatewayFields } from "../dialects/openai-chat/request-schema.ts";
import { capOf, fittedCap } from "../dialects/shared/output-cap.ts";
import type {
  RelayOptions,
  SseEvent,
  StreamRelay,
} from "../dialects/shared/stream/stream-relay.ts";
import { refusedFields } from "../dialects/shared/refused-parameters.ts";
import { asObject, objectsIn, unsupportedContent } from "../dialects/shared/wire-fields.ts";
import { chatDialectOf } from "../pipeline/adapt.ts";
import type { AdaptedRoute, Adapter, ChatCall } from "../pipeline/inference-call.ts";
import type { OwnCompletions } from "../providers/provider-definition.ts";
import type { EchoedPrompt, OwnOnly } from "./completion-shaper.ts";

/** A completion in the form in which its client sent it. */
export interface AskedCompletion {
  body: JsonObject;
  /** What was left out of the body, since no answer in the client's form shows it. */
  losses: readonly Loss[];
  /** The prompt that answers begin with; each route that answers sets it. */
  prompt: EchoedPrompt;
  /** What only a provider's own endpoint can answer; undefined where chat can. */
  ownOnly: OwnOnly | undefined;
}

/** Parameters that a preset may have added to the request for chat. */
const presetParameters = [
  ...["temperature", "top_p", "top_k", "seed", "stop", "frequency_penalty", "presence_penalty"],
  "repetition_penalty",
];

/** The output cap for endpoints of OpenAI's form, most of which end at 16 tokens without one (0473). */
const openaiCap = 1_024;

/** Fields that a llama.cpp server answers with 400 wherever they stand. */
const unknownToLlamaCpp: ReadonlySet<string> = new Set(["best_of", "suffix", "echo"]);

/** The name that Mistral has for a member of the same meaning. */
const mistralNames: Readonly<Record<string, string>> = { seed: "random_seed" };

/** Values that say nothing, so that nothing is lost without them. */
const neutral: ReadonlySet<unknown> = new Set([undefined, null, false, "", 1]);

/** Returns a route's endpoint for completions; undefined where it has none for the model. */
function ownCompletionsOf({ route }: AdaptedRoute): OwnCompletions | undefined {
  const own = route.provider.deviations.ownCompletions;
  if (own === undefined || chatDialectOf(route) !== "openai-chat") return undefined;
  return own.models?.test(route.upstreamModel) === false ? undefined : own;
}

/**
 * Adapts a completion to a route: it is sent to the provider's own endpoint where that is known to
 * be there, and as a chat elsewhere. `overChat` adapts the chat that was made of it. Throws
 * `unsupported_content` for what chat cannot express.
 */
export function adaptCompletion(
  call: ChatCall,
  asked: AskedCompletion,
  { route, overChat }: { route: AdaptedRoute; overChat(route: AdaptedRoute): Adapter },
): Adapter {
  const own = ownCompletionsOf(route);
  const { ownOnly } = asked;
  if (ownOnly !== undefined && (own === undefined || own.oneText === true))
    throw unsupportedContent(
      ownOnly.field,
      `${ownOnly.what}, which ${route.route.provider.name} cannot take: it has no completions endpoint for it that is known here.`,
    );
  const wantsEcho = asked.body.echo === true;
  const chat = overChat(route);
  if (own === undefined) return asAsked(chat, asked, wantsEcho);
  const { body, losses } = sentBody(call, asked, { route, own });
  // Where the endpoint begins no answer with the prompt, the gateway does.
  const isByGateway = wantsEcho && ownOnly === undefined && !takesEcho(own);
  const answersAsChat = own.form === "mistral";
  const adapter: Adapter = {
    answerDeviations: {},
    requestPath: own.path ?? "/completions",
    requestHeaders: { "content-type": "application/json" },
    requestText: JSON.stringify(body),
    losses,
    readWhole(text, answer) {
      if (answersAsChat) return chat.readWhole(text, answer);
      const whole = asChat(answer as JsonObject, "message");
      return chat.readWhole(JSON.stringify(whole), whole);
    },
    createRelay: (options) =>
      answersAsChat ? chat.createRelay(options) : new OwnRelay(chat.createRelay(options)),
  };
  return asAsked(adapter, asked, isByGateway);
}

const takesEcho = ({ form, fields }: OwnCompletions): boolean =>
  form !== "llama.cpp" && fields?.includes("echo") !== false;

/**
 * Returns the adapter with what the form loses on every route; it says whether the gateway begins
 * its answers with the prompt.
 */
const asAsked = (
  adapter: Adapter,
  { prompt, losses }: AskedCompletion,
  echo: boolean,
): Adapter => ({
  ...adapter,
  losses: [...losses, ...adapter.losses],
  readWhole(text, body) {
    prompt.echo = echo;
    return adapter.readWhole(text, body);
  },
  createRelay(options: RelayOptions) {
    prompt.echo = echo;
    return adapter.createRelay(options);
  },
});

/** Returns the body for a provider's own endpoint: the client's, without what it does not take. */
function sentBody(
  { body: chat }: ChatCall,
  { body: sent, ownOnly, prompt }: AskedCompletion,
  { route: { route, outputCap }, own }: { route: AdaptedRoute; own: OwnCompletions },
): { body: JsonObject; losses: readonly Loss[] } {
  const { deviations } = route.provider;
  const body: Record<string, JsonValue | undefined> = {};
  for (const [name, value] of Object.entries(sent))
    if (value !== null && !(chatGatewayFields as readonly string[]).includes(name))
      body[name] = value;
  for (const name of presetParameters) body[name] ??= (chat as JsonObject)[name];
  body.model = route.upstreamModel;
  // A list of one text; what has several is refused before.
  if (own.oneText === true) body.prompt = prompt.text;
  const asked = capOf((name) => chat[name] ?? undefined);
  const capped = fittedCap(asked ?? (own.form === "openai" ? openaiCap : undefined), {
    field: "max_tokens",
    route: within(route, own),
    outputCap,
  });
  // Nothing is generated where the prompt alone is scored.
  body.max_tokens = sent.max_tokens === 0 ? 0 : capped.cap;
  if (body.stream === true && deviations.noStreamOptions !== true)
    body.stream_options = { ...asObject(sent.stream_options), include_usage: true };
  else delete body.stream_options;
  if (own.form === "mistral") rename(body, mistralNames);
  if (own.stopIsList === true && typeof body.stop === "string") body.stop = [body.stop];
  const refused = refusedFields(body, { deviations, refuses: route.refuses });
  for (const field of refused.fields) delete body[field];
  const losses: Loss[] = [...capped.losses, ...refused.losses];
  for (const field of Object.keys(body)) {
    if (isTaken(field, own)) continue;
    const value = body[field];
    delete body[field];
    const isKept = field === "echo" && ownOnly === undefined;
    if (!neutral.has(value) && !isKept)
      losses.push({ field, reason: `${route.provider.name} does not take it here` });
  }
  return { body, losses };
}

/** Returns a route with the bound of its endpoint on output tokens, where that is the smaller one. */
const within = (
  route: AdaptedRoute["route"],
  { outputTokensMax: most }: OwnCompletions,
): AdaptedRoute["route"] =>
  most === undefined || (route.maxCompletionTokens ?? Infinity) <= most
    ? route
    : { ...route, maxCompletionTokens: most };

/** Gives members of a body other names. */
function rename(
  body: Record<string, JsonValue | undefined>,
  names: Readonly<Record<string, string>>,
): void {
  for (const [name, other] of Object.entries(names)) {
    if (body[name] !== undefined) body[other] ??= body[name];
    delete body[name];
  }
}

const isTaken = (field: string, { form, fields }: OwnCompletions): boolean =>
  field === "model" ||
  field === "prompt" ||
  (fields?.includes(field) !== false && !(form === "llama.cpp" && unknownToLlamaCpp.has(field)));

/** Returns an answer, or a chunk of one, with its texts where chat has them. */
const asChat = (answer: JsonObject, place: "message" | "delta"): JsonObject => {
  const { choices } = answer;
  if (choices === undefined) return answer;
  return {
    ...answer,
    object: place === "message" ? "chat.completion" : "chat.completion.chunk",
    choices: objectsIn(choices).map(({ text, ...choice }) => ({
      ...choice,
      [place]: {
        ...(place === "message" && { role: "assistant" }),
        ...(text === undefined || (place === "delta" && text === "") ? {} : { content: text }),
      },
    })),
  };
};

/** Relays a stream of completions as the chat stream that says the same. */
class OwnRelay implements StreamRelay {
  constructor(private readonly chat: StreamRelay) {}

  accept(event: SseEvent): string | Promise<string> {
    const { data } = event;
    if (data === "[DONE]") return this.chat.accept(event);
    let chunk: unknown;
    try {
      chunk = JSON.parse(data);
    } catch {
      return this.chat.accept(event);
    }
    return this.chat.accept({
      ...event,
      data: JSON.stringify(asChat(Object(chunk) as JsonObject, "delta")),
    });
  }

  finish(): Promise<string> {
    return this.chat.finish();
  }

  endAtCap(): Promise<string> {
    return this.chat.endAtCap();
  }

  fail(error: Parameters<StreamRelay["fail"]>[0]): string {
    return this.chat.fail(error);
  }

  metered(): ReturnType<StreamRelay["metered"]> {
    return this.chat.metered();
  }

  get outputCharacters(): number {
    return this.chat.outputCharacters;
  }

  get ended(): boolean {
    return this.chat.ended;
  }

  get hasContent(): boolean {
    return this.chat.hasContent;
  }

  get finished(): boolean {
    return this.chat.finished;
  }

  get finishReason(): string | null {
    return this.chat.finishReason;
  }

  get upstreamId(): string | null {
    return this.chat.upstreamId;
  }

  get losses(): readonly Loss[] {
    return this.chat.losses ?? [];
  }

  get pingFrame(): string {
    return this.chat.pingFrame;
  }

  get aside(): StreamRelay["aside"] {
    return this.chat.aside;
  }
}
