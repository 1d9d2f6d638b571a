import {
  editMembers,
  editScanned,
  replaceEach,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import { answerFacts } from "../../../canonical/answer-meter.ts";
import type { Finish } from "../../../canonical/response.ts";
import { fallbackMembers } from "../../shared/gateway-facts.ts";
import type { ShownAnswer, WholeAnswer } from "../../shared/exchange.ts";
import { errorOfFinish, providerMember } from "../answer-fields.ts";
import { decodeResponse } from "../decode-response.ts";
import { pricedUsageText } from "../usage.ts";
import {
  callsTools,
  finishWord,
  unixSeconds,
  withContentText,
  withoutThoughts,
  type AnswerShape,
} from "./answer-shape.ts";
import { type Fields, fieldsOf, withWholeCalls } from "./kept-calls.ts";

/** The members of a completion that may have to change. */
interface CompletionBody {
  id?: unknown;
  object?: unknown;
  created?: unknown;
  system_fingerprint?: unknown;
  provider?: unknown;
  error?: unknown;
  choices?: unknown;
  usage?: unknown;
}

/** The request and the route that a completion answers. */
interface CompletionOptions {
  shape: AnswerShape;
  /** The provider's slug. */
  providerId: string;
  nowSeconds: () => number;
}

/** Reads what settlement needs from a completion; undefined when the text is none. */
export function readCompletion(
  text: string,
  body: CompletionBody,
  { shape, providerId, nowSeconds }: CompletionOptions,
): WholeAnswer | undefined {
  const { choices } = body;
  if (!Array.isArray(choices)) return undefined;
  const response = decodeResponse(body, { callSeed: shape.callSeed });
  const broken = response.choices.find(({ finish }) => finish.reason === "error")?.finish;
  const { upstreamId, metered, outputCharacters, hasContent, spentOnReasoning } =
    answerFacts(response);
  return {
    upstreamId,
    metered,
    outputCharacters,
    hasContent,
    spentOnReasoning,
    finishReason: writtenFinish(choices),
    render: (shown) => {
      const lacking = lackingMembers(body, { choices, broken, shape, nowSeconds });
      const rendered = renderCompletion(text, shown, { lacking, reported: body.usage });
      return withProvider(rendered, { named: body.provider, providerId });
    },
  };
}

/** Returns the first finish reason as the provider wrote it; null where it wrote none. */
function writtenFinish(choices: readonly unknown[]): string | null {
  for (const choice of choices) {
    const reason = fieldsOf(choice)?.finish_reason;
    if (typeof reason === "string") return reason;
  }
  return null;
}

const objectName = "chat.completion";

/** Returns members that the contract requires in another form, as JSON text; usually none. */
function lackingMembers(
  body: CompletionBody,
  {
    choices,
    broken,
    shape,
    nowSeconds,
  }: {
    choices: readonly unknown[];
    /** The end that the provider broke off; undefined where it broke off none. */
    broken: Finish | undefined;
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
  const responseId = typeof body.id === "string" && body.id !== "" ? body.id : shape.callSeed;
  const shaped = shapedChoices(choices, { shape, responseId });
  if (shaped !== undefined) lacking.set("choices", JSON.stringify(shaped));
  if (broken !== undefined && (body.error ?? undefined) === undefined)
    lacking.set("error", JSON.stringify(errorOfFinish(broken)));
  return lacking;
}

/** The members of every answer that are replaced, in the order of `replaceEach`. */
const shownNames = ["id", "model", "usage"] as const;

/**
 * Returns the answer for the client: the upstream's text with id, model, usage and fallback
 * replaced.
 */
function renderCompletion(
  text: string,
  shown: ShownAnswer,
  {
    lacking,
    reported,
  }: {
    lacking: ReadonlyMap<string, string>;
    /** The usage of the text. */
    reported: unknown;
  },
): string {
  const { metered, chargedNano, fallback } = shown;
  const usual =
    fallback !== undefined || lacking.size > 0
      ? undefined
      : replaceEach(text, shownNames, (index, start, end) => {
          if (index < 2) return JSON.stringify(index === 0 ? shown.id : shown.model);
          const original = text.slice(start, end);
          return pricedUsageText({ original, reported, metered, chargedNano });
        });
  return usual ?? renderUnusual(text, shown, lacking);
}

/**
 * Does the same for an answer that lacks any of them or another required member, or that has more
 * to replace.
 */
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

/** Returns the answer with its provider, unless the upstream named one. */
function withProvider(
  text: string,
  { named, providerId }: { named: unknown; providerId: string },
): string {
  if (typeof named === "string") return text;
  const value = JSON.stringify(providerId);
  if (named !== undefined) return editMembers(text, new Map([[providerMember, value]]));
  return `${text.slice(0, text.lastIndexOf("}"))},"${providerMember}":${value}}`;
}

/** The form of a whole answer, and the id that its provider gave it. */
interface WholeShape {
  shape: AnswerShape;
  responseId: string;
}

/**
 * Returns the choices of a whole completion in the contract's form: an index, a message with its
 * role, one of five finish reasons, and no reasoning where that is hidden. Undefined where they
 * have this form already, so that their text can stay as it is.
 */
function shapedChoices(
  choices: readonly unknown[],
  whole: WholeShape,
): readonly unknown[] | undefined {
  const shaped = choices.map((value, position) =>
    shapedChoice(fieldsOf(value) ?? {}, { position, whole }),
  );
  return shaped.some((choice, position) => choice !== choices[position]) ? shaped : undefined;
}

function shapedChoice(
  choice: Fields,
  { position, whole }: { position: number; whole: WholeShape },
): Fields {
  const { shape } = whole;
  const message = shapedMessage(choice.message, whole);
  const calls = callsTools(message);
  const legacyFunctions = shape.legacyFunctions || (calls && !Array.isArray(message.tool_calls));
  const finish = finishWord(choice, { calls, legacyFunctions });
  if (
    typeof choice.index === "number" &&
    message === choice.message &&
    finish === choice.finish_reason
  )
    return choice;
  return {
    ...choice,
    index: typeof choice.index === "number" ? choice.index : position,
    message,
    finish_reason: finish,
  };
}

function shapedMessage(value: unknown, { shape, responseId }: WholeShape): Fields {
  const message = fieldsOf(value) ?? {};
  const shown = withWholeCalls(
    withContentText(shape.hidesReasoning ? withoutThoughts(message) : message),
    responseId,
  );
  if (shown.role === "assistant" && shown.content !== undefined) return shown;
  return { ...shown, role: "assistant", content: shown.content ?? null };
}
