import type { JsonObject } from "../../../canonical/json.ts";
import type { Loss } from "../../../canonical/request.ts";
import type { TargetRoute } from "../../shared/exchange.ts";
import { asArray, asObject, asString, RequestFields } from "../../shared/wire-fields.ts";
import { laterDefinitions, takesLaterSystem } from "../answer-fields.ts";

/** A conversation without instructions of its own, as one upstream is sent it. */
interface FittedInstructions {
  /** Undefined where the client's own messages can stay as they are. */
  messages: readonly unknown[] | undefined;
  /** The tools that the conversation defines, to be offered from its start. */
  tools: readonly JsonObject[];
  losses: readonly Loss[];
}

const unchanged: FittedInstructions = { messages: undefined, tools: [], losses: [] };

/**
 * Returns the messages with instructions within the conversation as the user's text at their place,
 * for a model that answers 400 "role 'system' is not supported on this model": Claude up to 4.7, to
 * which a conversation that began with a newer model falls back, and servers that declare it.
 */
export function fitInstructions(
  messages: unknown,
  { upstreamModel, provider: { deviations } }: TargetRoute["route"],
): FittedInstructions {
  const list = asArray(messages);
  if (list === undefined || takesLaterSystem(upstreamModel, deviations)) return unchanged;
  if (!list.some((message) => asObject(message)?.role === "system")) return unchanged;
  const losses: Loss[] = [];
  const fitted = list.flatMap((message, index) => {
    const fields = asObject(message);
    if (fields?.role !== "system") return [message];
    const reason = "the model takes instructions at the head alone; sent as the user's text";
    losses.push({ field: `messages[${index}].role`, reason });
    return reminderOf(fields);
  });
  const defined = laterDefinitions(new RequestFields({ messages: list }, ""));
  return { messages: fitted, tools: defined.map(({ object }) => object), losses };
}

/** Returns instructions as a user's message with their cache marker; none without a text. */
function reminderOf({ content }: JsonObject): JsonObject[] {
  const blocks = (asArray(content) ?? []).map((block) => asObject(block) ?? {});
  const said = typeof content === "string" ? [content] : blocks.map(({ text }) => asString(text));
  const text = said.filter((one) => one !== undefined && one.trim() !== "").join("\n\n");
  if (text === "") return [];
  const marker = blocks.findLast((block) => block.cache_control !== undefined)?.cache_control;
  const reminder = `<system-reminder>\n${text}\n</system-reminder>`;
  const block = { type: "text", text: reminder };
  return [
    {
      role: "user",
      content: [marker === undefined ? block : { ...block, cache_control: marker }],
    },
  ];
}
