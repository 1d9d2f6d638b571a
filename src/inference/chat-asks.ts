import type { PricePart } from "../account/ledger/price.ts";
import type { DialectId } from "./canonical/dialect-id.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { CatalogModel } from "./catalog/model.ts";
import type { RequestAsks } from "./inference-call.ts";
import { estimateInputTokens } from "./input-estimate.ts";
import type { ClientRequest } from "./interpret/interpretation.ts";

/** What of a request is looked at. */
type AskingRequest = Pick<ClientRequest, "dialect" | "body" | "text">;

type Body = Readonly<Record<string, unknown>>;

const numberField = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined;

const nested = (body: Body, field: string, member: string): unknown =>
  typeof body[field] === "object" && body[field] !== null
    ? (body[field] as Body)[member]
    : undefined;

/** Names of the output cap in each dialect, the first that is set counts. */
const capFields: Record<DialectId, readonly string[]> = {
  "openai-chat": ["max_completion_tokens", "max_tokens"],
  "anthropic-messages": ["max_tokens"],
  "openai-responses": ["max_output_tokens"],
  "google-generate": [],
};

/** The output cap that the caller set; undefined when it set none. */
function maxOutputTokensOf({ dialect, body }: AskingRequest): number | undefined {
  for (const field of capFields[dialect]) {
    const cap = numberField(body[field]);
    if (cap !== undefined) return cap;
  }
  return undefined;
}

/** The largest budget that Messages upstreams are given for an effort (`dialects/anthropic-messages/encode-thinking.ts`). */
const thoughtTokensMost = 32_000;

/** Whether the model is to think; undefined where the request does not say. */
function thinksOf({ dialect, body }: AskingRequest): boolean | undefined {
  if (dialect === "anthropic-messages")
    return "thinking" in body ? nested(body, "thinking", "type") !== "disabled" : undefined;
  const { reasoning } = body;
  const effort = body["reasoning_effort"] ?? nested(body, "reasoning", "effort");
  if (effort === "none" || nested(body, "reasoning", "enabled") === false) return false;
  return typeof effort === "string" || (typeof reasoning === "object" && reasoning !== null)
    ? true
    : undefined;
}

/** What translating the wish for thoughts may add to the cap; Messages clients have counted their thoughts themselves. */
const thoughtTokensOf = (
  { dialect, body }: AskingRequest,
  thinks: boolean | undefined,
): number | undefined =>
  thinks && dialect !== "anthropic-messages"
    ? (numberField(nested(body, "reasoning", "max_tokens")) ?? thoughtTokensMost)
    : undefined;

/** The budget for thoughts that an upstream may be told: the one that is named, or the one that an effort becomes. */
const thoughtBudgetOf = (
  { dialect, body }: AskingRequest,
  thoughtTokens: number | undefined,
): number | undefined =>
  dialect === "anthropic-messages"
    ? numberField(nested(body, "thinking", "budget_tokens"))
    : thoughtTokens;

/** Words of all dialects for pictures and sound that go in; whether they are there is looked for in the text. */
const richInput = /"(?:image_url|input_image|input_audio|input_file|image|file|document)"/;

/** Whether tokens may be used that have a price of their own: written to a cache, or of pictures and sound. */
function mayUsePart({ body, text }: AskingRequest, part: PricePart): boolean {
  switch (part) {
    case "cacheWriteTokens":
      return text.includes('"cache_control"');
    case "cacheWriteOneHourTokens":
      return text.includes('"cache_control"') && text.includes('"1h"');
    case "inputAudioTokens":
    case "inputImageTokens":
      return richInput.test(text);
    default:
      return (
        Array.isArray(body["modalities"]) &&
        body["modalities"].some((modality) => modality !== "text")
      );
  }
}

/** How many answers the caller asks for; only chat can ask for more than one. */
const choicesOf = ({ dialect, body }: AskingRequest): number =>
  dialect === "openai-chat" ? (numberField(body["n"]) ?? 1) : 1;

/** Whether only tool-capable providers may serve: tools are offered, or a choice among them is made, in today's or chat's older words. */
function asksForTools({
  dialect,
  body: { tools, tool_choice: choice, functions, function_call: call },
}: AskingRequest): boolean {
  if ((Array.isArray(tools) && tools.length > 0) || isSet(choice)) return true;
  return (
    dialect === "openai-chat" && ((Array.isArray(functions) && functions.length > 0) || isSet(call))
  );
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null;

/** Parameters that providers may or may not support, by their declared names, which are those of chat. */
const declaredParameters = [
  "tools",
  "tool_choice",
  "response_format",
  "temperature",
  "top_p",
  "top_k",
  "seed",
  "stop",
  "frequency_penalty",
  "presence_penalty",
  "repetition_penalty",
  "logit_bias",
  "logprobs",
  "top_logprobs",
  "min_p",
  "reasoning_effort",
  "reasoning",
  "max_tokens",
  "max_completion_tokens",
] as const;

/** Parameters that another dialect than chat calls otherwise, by their declared names. */
const otherNames: Partial<Record<DialectId, Readonly<Record<string, (body: Body) => unknown>>>> = {
  "openai-chat": {
    tools: (body) => body["tools"] ?? body["functions"],
    tool_choice: (body) => body["tool_choice"] ?? body["function_call"],
  },
  "anthropic-messages": {
    stop: (body) => body["stop_sequences"],
    response_format: (body) => nested(body, "output_config", "format"),
    reasoning_effort: (body) => nested(body, "output_config", "effort"),
    reasoning: (body) => body["thinking"],
    // Messages demands a cap of everybody, so it says nothing of what the caller cares for.
    max_tokens: () => undefined,
  },
  "openai-responses": {
    response_format: (body) => nested(body, "text", "format"),
    max_tokens: (body) => body["max_output_tokens"],
  },
};

/** Names of the declared parameters that the request sets. */
function parametersOf({ dialect, body }: AskingRequest): string[] {
  const others = otherNames[dialect] ?? {};
  return declaredParameters.filter((name) =>
    isSet(name in others ? others[name]?.(body) : body[name]),
  );
}

const noWishes: readonly string[] = [];
const formatWish: readonly string[] = ["response_format"];

/** A format of the answer is better kept by those who declare it, but nobody is left out for it (reasoning rule 6). */
function wishesOf({ dialect, body }: AskingRequest): readonly string[] {
  const format =
    dialect === "openai-chat"
      ? body["response_format"]
      : otherNames[dialect]?.["response_format"]?.(body);
  if (format === undefined || format === null) return noWishes;
  const { type } = Object(format) as { type?: unknown };
  return type === undefined || type === "text" ? noWishes : formatWish;
}

/** What a chat-shaped request asks for; what few requests need is worked out when it is asked for. */
class ChatAsks implements RequestAsks {
  readonly stream: boolean;
  readonly maxOutputTokens: number | undefined;
  readonly thinks: boolean | undefined;
  readonly thoughtTokens: number | undefined;
  readonly thoughtBudget: number | undefined;
  readonly neededOutputTokens: number | undefined;
  readonly wishedOutputTokens: number | undefined;
  readonly choices: number;
  readonly wishedParameters: readonly string[];
  readonly needsTools: boolean;
  private readonly request: AskingRequest;

  constructor(request: AskingRequest) {
    this.request = request;
    this.stream = request.body["stream"] === true;
    this.maxOutputTokens = maxOutputTokensOf(request);
    this.thinks = thinksOf(request);
    this.thoughtTokens = thoughtTokensOf(request, this.thinks);
    this.thoughtBudget = thoughtBudgetOf(request, this.thoughtTokens);
    // Messages demands a cap of everybody, and agents send the same large number to every model: what no route allows is lowered there.
    const isNeeded = request.dialect === "openai-chat";
    this.neededOutputTokens = isNeeded ? this.maxOutputTokens : undefined;
    this.wishedOutputTokens = isNeeded ? undefined : this.maxOutputTokens;
    this.choices = choicesOf(request);
    this.wishedParameters = wishesOf(request);
    this.needsTools = asksForTools(request);
  }

  parameters(): string[] {
    return parametersOf(this.request);
  }

  mayUse(part: PricePart): boolean {
    return mayUsePart(this.request, part);
  }

  estimateInputTokens(): number {
    return estimateInputTokens(this.request.text, this.request.body);
  }
}

/** What a chat-shaped request asks for. */
export const chatAsks = (request: AskingRequest): RequestAsks => new ChatAsks(request);

/** Chat-shaped routes serve chat models alone. */
export function assertServesChat({ id, surface }: CatalogModel): void {
  if (surface === "chat") return;
  const message = `The model ${id} does not chat; it serves ${surface}. Call that endpoint, or another model.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}
