import type { JsonObject } from "../../../canonical/json.ts";
import type { DialectDeviations } from "../../dialect.ts";
import { asArray, asObject } from "../../shared/wire-fields.ts";

/** What an upstream requires of messages beside the chat dialect. */
interface MessageRules {
  deviations: DialectDeviations;
  /** Whether the model is going to reason. */
  reasons: boolean;
}

/** The turn that stands between a result and the user's next words. */
const acknowledgement: JsonObject = { role: "assistant", content: "Done." };

/**
 * Returns the messages as an upstream with deviations of its own accepts them. Messages that already
 * are in that form, and lists without any change, are returned as they are.
 */
export function fitMessages(
  messages: readonly JsonObject[],
  rules: MessageRules,
): readonly JsonObject[] {
  if (!hasMessageRules(rules)) return messages;
  let isChanged = false;
  const fitted: JsonObject[] = [];
  const needsReasoning = requiresReasoning(messages, rules);
  for (const [index, message] of messages.entries()) {
    if (rules.deviations.refusesEmptyTurns === true && isEmptyTurn(message)) {
      isChanged = true;
      continue;
    }
    const fit = fitMessage(message, { deviations: rules.deviations, needsReasoning, index });
    const before = fitted.at(-1);
    if (rules.deviations.answersResults === true && isAfterResult(fit, before)) {
      fitted.push(acknowledgement);
      isChanged = true;
    }
    if (fit !== message) isChanged = true;
    fitted.push(fit);
  }
  return isChanged ? fitted : messages;
}

const isAfterResult = (message: JsonObject, before: JsonObject | undefined): boolean =>
  message.role === "user" && before?.role === "tool";

/** Returns whether an assistant's turn says and calls nothing: it consists of reasoning alone. */
const isEmptyTurn = ({ role, content, tool_calls: calls }: JsonObject): boolean =>
  role === "assistant" &&
  (asArray(calls) ?? []).length === 0 &&
  (typeof content === "string" ? content.trim() === "" : (asArray(content) ?? []).length === 0);

/**
 * Returns whether every turn with calls needs a field for its reasoning. A model whose reasoning is
 * not declared reasons where an earlier turn has reasoned.
 */
const requiresReasoning = (
  messages: readonly JsonObject[],
  { deviations, reasons }: MessageRules,
): boolean =>
  deviations.reasoningBesideCalls === true &&
  (reasons ||
    messages.some(({ reasoning_content: text }) => typeof text === "string" && text !== ""));

/** Returns whether an upstream requires anything of messages. */
export const hasMessageRules = ({ deviations }: Pick<MessageRules, "deviations">): boolean =>
  deviations.nineCharacterCallIds === true ||
  deviations.answersResults === true ||
  deviations.refusesDeveloper === true ||
  deviations.systemOnlyFirst === true ||
  deviations.unsupportedMessageFields !== undefined ||
  deviations.refusesEmptyTurns === true ||
  deviations.reasoningBesideCalls === true;

function fitMessage(
  message: JsonObject,
  {
    deviations,
    needsReasoning,
    index,
  }: { deviations: DialectDeviations; needsReasoning: boolean; index: number },
): JsonObject {
  let fit = message;
  if (deviations.refusesDeveloper === true && fit.role === "developer")
    fit = { ...fit, role: "system" };
  if (deviations.systemOnlyFirst === true && index > 0 && fit.role === "system")
    fit = asReminder(fit);
  fit = withoutFields(fit, deviations.unsupportedMessageFields);
  const calls = asArray(fit.tool_calls) ?? [];
  if (deviations.nineCharacterCallIds === true) fit = withShortIds(fit);
  if (needsReasoning && calls.length > 0 && typeof fit.reasoning_content !== "string")
    fit = { ...fit, reasoning_content: "" };
  return fit;
}

/** Returns later instructions as the user's text, at their place in the conversation. */
function asReminder(message: JsonObject): JsonObject {
  const parts = asArray(message.content);
  const text =
    parts === undefined
      ? String(message.content ?? "")
      : parts.map((part) => String(asObject(part)?.text ?? "")).join("\n\n");
  return { role: "user", content: `<system-reminder>\n${text}\n</system-reminder>` };
}

function withoutFields(message: JsonObject, fields: readonly string[] | undefined): JsonObject {
  if (fields === undefined || !fields.some((field) => field in message)) return message;
  return Object.fromEntries(Object.entries(message).filter(([field]) => !fields.includes(field)));
}

function withShortIds(message: JsonObject): JsonObject {
  const { tool_call_id: id, tool_calls: calls } = message;
  const list = asArray(calls);
  if (typeof id !== "string" && list === undefined) return message;
  if ((typeof id !== "string" || shortId(id) === id) && (list ?? []).every(hasShortId))
    return message;
  return {
    ...message,
    ...(typeof id === "string" && { tool_call_id: shortId(id) }),
    ...(list !== undefined && {
      tool_calls: list.map((call) => {
        const fields = asObject(call);
        return fields === undefined ? call : { ...fields, id: shortId(String(fields.id ?? "")) };
      }),
    }),
  };
}

const hasShortId = (call: unknown): boolean => {
  const id = asObject(call)?.id;
  return typeof id === "string" && shortId(id) === id;
};

/**
 * Returns an id of nine letters and digits: the id itself where it is one, or a hash of it, which is
 * the same for a call and its result in every request.
 */
const shortId = (id: string): string =>
  /^[a-zA-Z0-9]{9}$/.test(id) ? id : Bun.hash.wyhash(id).toString(36).padStart(9, "0").slice(-9);
