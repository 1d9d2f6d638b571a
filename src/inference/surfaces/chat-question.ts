import type { TextPart, ImagePart } from "../canonical/message.ts";
import type { DialectId } from "../canonical/dialect-id.ts";
import type { FinishReason, TokenLogProbability, MeteredUsage } from "../canonical/response.ts";
import type { Loss, CanonicalRequest } from "../canonical/request.ts";
import type { ReasoningLevels } from "../catalog/model.ts";
import { clampEffort } from "../dialects/shared/reasoning-rules.ts";
import { upstreamDialects } from "../dialects/index.ts";
import type { AdaptedRoute } from "../pipeline/inference-call.ts";
import { chatDialectOf } from "../pipeline/adapt.ts";
import type { Fields } from "./read-fields.ts";

/** A question for a model that answers through chat on behalf of another surface. */
export interface ChatQuestion {
  system?: string;
  user: string;
  /** A picture that the user's text is about. */
  picture?: { mediaType: string; base64: string };
  outputTokensMax: number;
  /** The reasoning effort, where the model reasons. */
  effort?: string;
  /** The number of candidates per token for which log probabilities are requested. */
  candidates?: number;
  /** Members that servers of OpenAI's dialect understand beyond it. */
  more?: Fields;
}

/** A model's answer to a question. */
interface ChatReply {
  /** Its visible text. */
  text: string;
  /** The log probabilities of its first token; undefined where there are none. */
  firstToken: TokenLogProbability | undefined;
  finish: FinishReason;
  metered: MeteredUsage | undefined;
  id: string;
}

/** A request to a route in chat, and how its answer is decoded. */
export interface ChatWire {
  headers?: Readonly<Record<string, string>>;
  encode(question: ChatQuestion): { body: object; losses: readonly Loss[] };
  /**
   * Decodes an answer; undefined when it has no choice. Throws `GatewayError` when the body is none
   * of the dialect's.
   */
  decode(body: object): ChatReply | undefined;
}

/**
 * Returns the chat dialect of a route: that of its chat models, or OpenAI's where another surface
 * is served through chat.
 */
const wireDialectOf = ({ model, route }: AdaptedRoute): DialectId =>
  model.surface === "chat" ? chatDialectOf(route) : "openai-chat";

/** Returns the requested effort; servers whose models declare none may refuse the field. */
function effortOf(
  { effort }: ChatQuestion,
  declared: ReasoningLevels | undefined,
): string | undefined {
  if (
    effort === undefined ||
    declared === undefined ||
    (effort === "none" && !declared.levels.includes(effort))
  )
    return undefined;
  return clampEffort(effort, declared);
}

/**
 * Returns whether a model accepts a temperature. Models that declare their parameters without it
 * refuse it, as OpenAI's reasoning models do.
 */
const takesTemperature = ({ model, route }: AdaptedRoute): boolean =>
  (route.supportedParameters ?? model.supportedParameters)?.includes("temperature") ?? true;

function partsOf({ user, picture }: ChatQuestion): readonly (TextPart | ImagePart)[] {
  const text: TextPart = { type: "text", text: user };
  if (picture === undefined) return [text];
  return [
    text,
    {
      type: "image",
      source: { type: "base64", mediaType: picture.mediaType, data: picture.base64 },
    },
  ];
}

const requestOf = (
  question: ChatQuestion,
  { dialect, adapted }: { dialect: DialectId; adapted: AdaptedRoute },
): CanonicalRequest => ({
  dialect: "openai-chat",
  model: "",
  messages: [
    ...(question.system === undefined
      ? []
      : [{ role: "system" as const, parts: [{ type: "text" as const, text: question.system }] }]),
    { role: "user", parts: partsOf(question) },
  ],
  stream: false,
  sampling: takesTemperature(adapted) ? { temperature: 0 } : {},
  maxOutputTokens: question.outputTokensMax,
  ...withEffort(effortOf(question, adapted.route.reasoning ?? adapted.model.reasoning)),
  ...(question.candidates !== undefined && { logProbabilities: { top: question.candidates } }),
  ...(question.more !== undefined &&
    dialect === "openai-chat" && { extensions: { dialect, fields: question.more as never } }),
});

const withEffort = (effort: string | undefined): Pick<CanonicalRequest, "reasoning"> =>
  effort === undefined ? {} : { reasoning: { effort } };

/** Returns how a route is asked questions in chat. */
export function chatWire(adapted: AdaptedRoute): ChatWire {
  const { route } = adapted;
  const dialect = upstreamDialects[wireDialectOf(adapted)];
  const { provider, upstreamModel, maxCompletionTokens } = route;
  return {
    ...(dialect.requestHeaders !== undefined && { headers: dialect.requestHeaders }),
    encode(question) {
      return dialect.encodeRequest(requestOf(question, { dialect: dialect.id, adapted }), {
        upstreamModel,
        stream: false,
        providerId: provider.id,
        deviations: provider.deviations,
        ...(maxCompletionTokens !== undefined && { maxCompletionTokens }),
      });
    },
    decode(body) {
      const { choices, usage, id } = dialect.decodeResponse(body, { providerId: provider.id });
      const [choice] = choices;
      if (choice === undefined) return undefined;
      const text = choice.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
      return {
        text,
        firstToken: choice.logProbabilities?.content?.[0],
        finish: choice.finish.reason,
        metered: usage,
        id,
      };
    },
  };
}
