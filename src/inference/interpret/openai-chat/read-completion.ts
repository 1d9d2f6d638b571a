import { editScanned, replaceEach, scanMembers } from "../../../platform/lib/json-members.ts";
import type { Finish } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { decodeFinish, errorOfFinish } from "../../dialects/openai-chat/finish-fields.ts";
import { readChatUsage } from "../../dialects/openai-chat/read-usage.ts";
import type { ShownAnswer, WholeAnswer } from "../interpretation.ts";
import { fallbackMembers } from "../model-fallback.ts";
import { shapedChoices, unixSeconds, type AnswerShape } from "./answer-shape.ts";
import { pricedUsageText } from "./chat-usage-text.ts";

interface ChoiceMessage {
  content?: unknown;
  refusal?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  tool_calls?: unknown;
  function_call?: unknown;
  audio?: unknown;
}

interface CompletionBody {
  id?: unknown;
  object?: unknown;
  created?: unknown;
  system_fingerprint?: unknown;
  error?: unknown;
  choices?: unknown;
  usage?: unknown;
}

const lengthOf = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  return Array.isArray(value)
    ? value.reduce<number>((sum, part: { text?: unknown } | null) => sum + lengthOf(part?.text), 0)
    : 0;
};

const toolLength = (value: unknown): number =>
  Array.isArray(value) && value.length > 0 ? JSON.stringify(value).length : 0;

/** Reads what settlement needs from a completion; undefined when it is none. */
export function readCompletion(
  text: string,
  body: CompletionBody,
  { shape, nowSeconds }: { shape: AnswerShape; nowSeconds: () => number },
): WholeAnswer | undefined {
  const choices = body.choices;
  if (!Array.isArray(choices)) return undefined;
  let content = 0;
  let reasoning = 0;
  let other = 0;
  let finishReason: string | null = null;
  let finish: Finish | undefined;
  for (const choice of choices as ({ message?: ChoiceMessage; finish_reason?: unknown } | null)[]) {
    const message = choice?.message ?? {};
    content += lengthOf(message.content) + lengthOf(message.refusal);
    reasoning += lengthOf(message.reasoning_content ?? message.reasoning);
    other += toolLength(message.tool_calls);
    if (message.function_call || message.audio) other += 1;
    if (typeof choice?.finish_reason !== "string") continue;
    finishReason ??= choice.finish_reason;
    finish ??= decodeFinish(choice as JsonObject);
  }
  const metered = readChatUsage(body.usage);
  const answered = content + other > 0;
  const isCut = finish?.reason === "length";
  return {
    finishReason,
    metered,
    upstreamId: typeof body.id === "string" ? body.id : null,
    outputCharacters: content + reasoning + other,
    hasContent: answered || isCut || isRefused(finish) || (reasoning > 0 && !isQuietEnd(finish)),
    spentOnReasoning:
      !answered && isCut && (reasoning > 0 || (metered?.usage.reasoningTokens ?? 0) > 0),
    render: (shown) =>
      renderCompletion(text, shown, lackingMembers(body, { choices, finish, shape, nowSeconds })),
  };
}

const isRefused = (finish: Finish | undefined): boolean =>
  finish?.reason === "content_filter" || finish?.reason === "refusal";

/** Ends after which thoughts alone are no answer. */
const isQuietEnd = (finish: Finish | undefined): boolean =>
  finish !== undefined && ["stop", "stop_sequence", "error"].includes(finish.reason);

const objectName = "chat.completion";

/** Members that the contract wants otherwise, as JSON text; usually none. */
function lackingMembers(
  body: CompletionBody,
  {
    choices,
    finish,
    shape,
    nowSeconds,
  }: {
    choices: readonly unknown[];
    finish: Finish | undefined;
    shape: AnswerShape;
    nowSeconds: () => number;
  },
): ReadonlyMap<string, string> {
  const lacking = new Map<string, string>();
  if (body.object !== objectName) lacking.set("object", JSON.stringify(objectName));
  const created = unixSeconds(body.created);
  if (created === undefined || created !== body.created)
    lacking.set("created", String(created ?? nowSeconds()));
  // OpenRouter's client (1.3.19) refuses a completion without this member.
  if (typeof body.system_fingerprint !== "string" && body.system_fingerprint !== null)
    lacking.set("system_fingerprint", "null");
  const shaped = shapedChoices(choices, shape);
  if (shaped !== undefined) lacking.set("choices", JSON.stringify(shaped));
  if (finish?.reason === "error" && (body.error ?? undefined) === undefined)
    lacking.set("error", JSON.stringify(errorOfFinish(finish)));
  return lacking;
}

/** What every answer shows of its own, in the order of `replaceEach`. */
const shownNames = ["id", "model", "usage"] as const;

/** The answer as the client gets it: the upstream's text with id, model, usage and fallback replaced. */
function renderCompletion(
  text: string,
  shown: ShownAnswer,
  lacking: ReadonlyMap<string, string>,
): string {
  const { metered, chargedNano, fallback } = shown;
  const usual =
    fallback !== undefined || lacking.size > 0
      ? undefined
      : replaceEach(text, shownNames, (index, start, end) => {
          if (index < 2) return JSON.stringify(index === 0 ? shown.id : shown.model);
          return pricedUsageText({ original: text.slice(start, end), metered, chargedNano });
        });
  return usual ?? renderUnusual(text, shown, lacking);
}

/** The same for an answer that lacks any of them or what every completion has beside, or that has more to show. */
function renderUnusual(
  text: string,
  { id, model, metered, chargedNano, fallback }: ShownAnswer,
  lacking: ReadonlyMap<string, string>,
): string {
  const members = scanMembers(text);
  const usage = members.find((member) => member.key === "usage");
  const original = usage === undefined ? undefined : text.slice(usage.valueStart, usage.valueEnd);
  const edits = new Map<string, string | undefined>([
    ["id", JSON.stringify(id)],
    ["model", JSON.stringify(model)],
    ["usage", pricedUsageText({ original, metered, chargedNano })],
  ]);
  for (const [key, value] of lacking) edits.set(key, value);
  for (const [key, value] of fallback === undefined ? [] : fallbackMembers(fallback))
    edits.set(key, value);
  return editScanned(text, members, edits);
}
