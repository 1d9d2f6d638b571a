import type { JsonObject, JsonValue } from "../canonical/json.ts";
import type { Loss } from "../canonical/request.ts";
import { chatGatewayFields } from "../dialects/openai-chat/request-schema.ts";
import {
  fittedCap,
  type RelayOptions,
  type SseEvent,
  type StreamRelay,
} from "../dialects/shared/passthrough.ts";
import { refusedFields } from "../dialects/shared/refused-parameters.ts";
import { asObject, objectsIn, unsupportedContent } from "../dialects/shared/wire-fields.ts";
import { chatDialectOf } from "../pipeline/adapt.ts";
import type { AdaptedRoute, Adapter, ChatCall } from "../pipeline/inference-call.ts";
import type { EchoedPrompt, OwnOnly } from "./completion-shaped-chat.ts";

/** A completion in the form in which its client sent it. */
export interface AskedCompletion {
  body: JsonObject;
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

/** Fields that a llama.cpp server answers with 400 wherever they stand. */
const unknownToLlamaCpp: ReadonlySet<string> = new Set(["best_of", "suffix", "echo"]);

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
  const kind = route.route.provider.deviations.ownCompletions;
  const isOwn = kind !== undefined && chatDialectOf(route.route) === "openai-chat";
  const { ownOnly, prompt } = asked;
  if (!isOwn && ownOnly !== undefined)
    throw unsupportedContent(
      ownOnly.field,
      `${ownOnly.what}, which ${route.route.provider.name} cannot take: it has no completions endpoint that is known here.`,
    );
  const wantsEcho = asked.body.echo === true;
  const chat = overChat(route);
  if (!isOwn) return echoing(chat, { prompt, echo: wantsEcho });
  const { body, losses } = sentBody(call, asked, route);
  // A llama.cpp server begins no answer with the prompt, so that the gateway does.
  const isByGateway = kind === "llama.cpp" && wantsEcho && ownOnly === undefined;
  const own: Adapter = {
    answerDeviations: {},
    requestPath: "/completions",
    requestHeaders: { "content-type": "application/json" },
    requestText: JSON.stringify(body),
    losses,
    readWhole(_, answer) {
      const whole = asChat(answer as JsonObject, "message");
      return chat.readWhole(JSON.stringify(whole), whole);
    },
    createRelay: (options) => new OwnRelay(chat.createRelay(options)),
  };
  return echoing(own, { prompt, echo: isByGateway });
}

/** Returns the adapter, which says whether the gateway begins its answers with the prompt. */
const echoing = (
  adapter: Adapter,
  { prompt, echo }: { prompt: EchoedPrompt; echo: boolean },
): Adapter => ({
  ...adapter,
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
  { body: sent, ownOnly }: AskedCompletion,
  { route, outputCap }: AdaptedRoute,
): { body: JsonObject; losses: readonly Loss[] } {
  const { deviations } = route.provider;
  const body: Record<string, JsonValue | undefined> = {};
  for (const [name, value] of Object.entries(sent))
    if (value !== null && !(chatGatewayFields as readonly string[]).includes(name))
      body[name] = value;
  for (const name of presetParameters) body[name] ??= (chat as JsonObject)[name];
  body.model = route.upstreamModel;
  const capped = fittedCap(chat["max_tokens"], { field: "max_tokens", route, outputCap });
  // Nothing is generated where the prompt alone is scored.
  body.max_tokens = sent.max_tokens === 0 ? 0 : capped.cap;
  if (body.stream === true && deviations.noStreamOptions !== true)
    body.stream_options = { ...asObject(sent.stream_options), include_usage: true };
  else delete body.stream_options;
  const refused = refusedFields(body, { deviations, refuses: route.refuses });
  for (const field of refused.fields) delete body[field];
  const losses: Loss[] = [...capped.losses, ...refused.losses];
  if (deviations.ownCompletions === "llama.cpp")
    for (const field of unknownToLlamaCpp) {
      const value = body[field];
      delete body[field];
      const isKept = field === "echo" && ownOnly === undefined;
      if (value !== undefined && value !== false && value !== "" && !isKept)
        losses.push({ field, reason: "llama.cpp's server does not take it" });
    }
  return { body, losses };
}

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
  private readonly chat: StreamRelay;

  constructor(chat: StreamRelay) {
    this.chat = chat;
  }

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
}
