import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import type { Loss } from "../../../canonical/request.ts";
import { isReasoningOff } from "../../shared/refused-parameters.ts";
import { cutCallId, jsonAdvice } from "../../shared/tools.ts";
import { asArray, asObject, withoutUndefined } from "../../shared/wire-fields.ts";
import { textAlone } from "./text-alone.ts";
import type { DialectDeviations } from "../../deviations.ts";
import { plainSchema } from "./plain-schemas.ts";

/** Returns a body as an upstream with deviations of its own accepts it. */
export function fitBody(
  body: JsonObject,
  upstream: FittedUpstream,
): { body: JsonObject; losses: readonly Loss[] } {
  const { changes, losses } = bodyChanges(body, upstream);
  return {
    body: Object.keys(changes).length === 0 ? body : withoutUndefined({ ...body, ...changes }),
    losses,
  };
}

/** Returns what has to change in a body for an upstream: by its rules, and then its messages. */
export function bodyChanges(sent: JsonObject, upstream: FittedUpstream): BodyChanges {
  const changes: Record<string, JsonValue | undefined> = {};
  const losses: Loss[] = [];
  let body = sent;
  for (const rule of bodyRules) {
    const made = rule(body, upstream);
    if (made === unchanged) continue;
    Object.assign(changes, made.changes);
    losses.push(...made.losses);
    body = { ...body, ...made.changes } as JsonObject;
  }
  const rules = { ...upstream, reasons: upstream.reasons && !isReasoningOff(body) };
  const messages = hasMessageRules(rules) ? asArray(body.messages) : undefined;
  if (messages === undefined) return { changes, losses };
  const objects = messages.map((message) => asObject(message) ?? {});
  const fitted = fitMessages(objects, rules);
  return { changes: fitted === objects ? changes : { ...changes, messages: fitted }, losses };
}

/** Leaves out what an upstream that reads text alone refuses. */
function readableMessages(
  body: JsonObject,
  { deviations: { readsTextAlone, readsPictures }, upstreamModel }: FittedUpstream,
): BodyChanges {
  const seesPictures = readsPictures?.test(upstreamModel) === true;
  const text = readsTextAlone === true && textAlone(asArray(body.messages) ?? [], { seesPictures });
  if (text === false || text === undefined) return unchanged;
  return { changes: { messages: text.messages }, losses: text.losses };
}

/**
 * Asks in words for the schema of an answer that the upstream enforces as JSON alone, and for JSON
 * that it does not enforce beside functions.
 */
function plainFormat(body: JsonObject, { deviations }: FittedUpstream): BodyChanges {
  const format = asObject(body.response_format);
  const isSchema = format?.type === "json_schema";
  if (format === undefined || (!isSchema && format.type !== "json_object")) return unchanged;
  const isFree = deviations.formatWithoutFunctions === true && offersFunctions(body);
  if (!isFree && !(isSchema && deviations.jsonWithoutSchema === true)) return unchanged;
  const advice = jsonAdvice(asObject(asObject(format.json_schema)?.schema));
  const messages = asArray(body.messages) ?? [];
  const reason = isFree
    ? "the model is asked to answer in JSON, and not held to it"
    : "the schema is described, not enforced";
  return {
    changes: {
      response_format: isFree ? undefined : { type: "json_object" },
      messages: [{ role: "system", content: advice }, ...messages],
    },
    losses: [{ field: "response_format", reason }],
  };
}

/** Lowers a temperature that the upstream does not take. */
function takenTemperature(
  { temperature }: JsonObject,
  { deviations: { temperatureMax: most } }: FittedUpstream,
): BodyChanges {
  if (most === undefined || typeof temperature !== "number" || temperature <= most)
    return unchanged;
  return {
    changes: { temperature: most },
    losses: [{ field: "temperature", reason: `at most ${most} here` }],
  };
}

/** The turn behind a beginning of an answer, for an upstream that takes none. */
const closingTurn: JsonObject = { role: "user", content: "Continue." };

/** Closes a conversation that ends in the model's own words, where the upstream takes none there. */
function closedMessages(body: JsonObject, { deviations }: FittedUpstream): BodyChanges {
  const messages = deviations.refusesBegunAnswers === true ? asArray(body.messages) : undefined;
  const last = asObject(messages?.at(-1));
  if (messages === undefined || last?.role !== "assistant" || last.prefix === true)
    return unchanged;
  if (isEmptyTurn(last) || (asArray(last.tool_calls) ?? []).length > 0) return unchanged;
  const field = `messages[${messages.length - 1}]`;
  return {
    changes: { messages: [...messages, closingTurn] },
    losses: [{ field, reason: "the model takes no beginning of its answer" }],
  };
}

/** The upstream that a chat body is fitted to. */
export interface FittedUpstream {
  deviations: DialectDeviations;
  /** Whether the catalog says that the model reasons. */
  reasons: boolean;
  upstreamModel: string;
}

/** The members of a body that change for an upstream; undefined removes a member. */
interface BodyChanges {
  changes: Readonly<Record<string, JsonValue | undefined>>;
  losses: readonly Loss[];
}

/** A body that stays as it is. */
const unchanged: BodyChanges = { changes: {}, losses: [] };

/** Returns whether an upstream has rules about functions. */
export const hasFunctionRules = (deviations: DialectDeviations): boolean =>
  deviations.unsupportedToolFields !== undefined ||
  deviations.unforcedWhileReasoning === true ||
  deviations.unreasonedFunctions !== undefined ||
  deviations.formatWithoutFunctions === true ||
  deviations.plainSchemas === true ||
  deviations.unnamedToolChoice === true;

const functionOf = (tool: JsonValue | undefined): JsonObject | undefined =>
  asObject(asObject(tool)?.function);

const offersFunctions = ({ tools }: JsonObject): boolean =>
  asArray(tools)?.some((tool) => functionOf(tool) !== undefined) === true;

/** Leaves out members of functions, and parts of their schemas, that the upstream refuses. */
function plainTools(body: JsonObject, { deviations }: FittedUpstream): BodyChanges {
  const { unsupportedToolFields: fields = [], plainSchemas } = deviations;
  const tools = fields.length > 0 || plainSchemas ? asArray(body.tools) : undefined;
  if (tools === undefined) return unchanged;
  const losses: Loss[] = [];
  const plain = tools.map((tool, index) => {
    const definition = functionOf(tool);
    if (definition === undefined) return tool;
    const fitted = plainDefinition(definition, { fields, plainSchemas: plainSchemas === true });
    if (fitted === definition) return tool;
    for (const field of fields.filter((name) => definition[name] === true))
      losses.push({ field: `tools[${index}].${field}`, reason: "the upstream does not take it" });
    if (fitted.parameters !== definition.parameters)
      losses.push({
        field: `tools[${index}].parameters`,
        reason: "written as the upstream's validator of schemas takes it",
      });
    return { ...asObject(tool), function: fitted };
  });
  return plain.some((tool, index) => tool !== tools[index])
    ? { changes: { tools: plain }, losses }
    : unchanged;
}

/** Returns a function as the upstream takes it; the same object where nothing has to change. */
function plainDefinition(
  definition: JsonObject,
  { fields, plainSchemas }: { fields: readonly string[]; plainSchemas: boolean },
): JsonObject {
  const kept = fields.some((field) => definition[field] !== undefined)
    ? Object.fromEntries(Object.entries(definition).filter(([name]) => !fields.includes(name)))
    : definition;
  const schema = plainSchemas ? asObject(kept.parameters) : undefined;
  const parameters = schema && plainSchema(schema);
  return parameters === schema ? kept : { ...kept, parameters };
}

/** What turns reasoning off where the effort `none` does not. */
const off = { thinking: { type: "disabled" }, reasoning_effort: undefined };

const alwaysReasons = ({
  deviations: { thinkingSwitch },
  upstreamModel,
}: FittedUpstream): boolean => thinkingSwitch?.alwaysReasons?.test(upstreamModel) === true;

/** Turns reasoning off by the switch of an upstream that passes over the effort `none`. */
function switchedOff(body: JsonObject, upstream: FittedUpstream): BodyChanges {
  const { deviations, reasons } = upstream;
  if (deviations.thinkingSwitch === undefined || !reasons || body.reasoning_effort !== "none")
    return unchanged;
  if (!alwaysReasons(upstream)) return { changes: off, losses: [] };
  return {
    changes: { reasoning_effort: deviations.thinkingSwitch.leastEffort },
    losses: [{ field: "reasoning", reason: "the model cannot stop thinking" }],
  };
}

/**
 * Turns reasoning off for a forced tool where the model can, and otherwise lets the model choose
 * among the tools.
 */
function unforcedTool(body: JsonObject, upstream: FittedUpstream): BodyChanges {
  const { tool_choice: choice } = body;
  const isForced = choice === "required" || asObject(choice)?.type === "function";
  const { deviations, reasons } = upstream;
  if (deviations.unforcedWhileReasoning !== true || !reasons || !isForced || isReasoningOff(body))
    return unchanged;
  if (alwaysReasons(upstream))
    return {
      changes: { tool_choice: "auto" },
      losses: [{ field: "tool_choice", reason: "a model that reasons chooses its tools itself" }],
    };
  return {
    changes: off,
    losses: [
      {
        field: "reasoning",
        reason: "the model cannot think where it is forced to call a tool",
      },
    ],
  };
}

/** Lowers the effort `max` for models that take it in another dialect alone. */
function knownEffort(
  { reasoning_effort: effort }: JsonObject,
  { deviations: { maxEffortElsewhere: models }, upstreamModel }: FittedUpstream,
): BodyChanges {
  if (effort !== "max" || models?.test(upstreamModel) !== true) return unchanged;
  const reason = "the model knows no effort max here; it is sent xhigh";
  return {
    changes: { reasoning_effort: "xhigh" },
    losses: [{ field: "reasoning_effort", reason }],
  };
}

/**
 * Turns reasoning off beside functions for models that reason with them on Responses alone, where
 * the request has to stay on chat: Responses has no several answers.
 */
function unreasonedFunctions(
  body: JsonObject,
  { deviations: { unreasonedFunctions: models }, upstreamModel }: FittedUpstream,
): BodyChanges {
  if (models?.test(upstreamModel) !== true || isReasoningOff(body) || !offersFunctions(body))
    return unchanged;
  return {
    changes: { reasoning_effort: "none" },
    losses: [
      {
        field: "reasoning_effort",
        reason: "the model gives several answers with tools only without reasoning",
      },
    ],
  };
}

/** Offers a named function alone, and requires a call, where the upstream takes no named choice. */
function unnamedChoice(body: JsonObject, { deviations }: FittedUpstream): BodyChanges {
  const choice = deviations.unnamedToolChoice === true ? asObject(body.tool_choice) : undefined;
  const name = choice?.type === "function" ? asObject(choice.function)?.name : undefined;
  const tools = asArray(body.tools);
  const named = tools?.filter((tool) => functionOf(tool)?.name === name);
  if (name === undefined || tools === undefined || named?.length !== 1) return unchanged;
  return {
    changes: { tool_choice: "required", tools: named },
    losses:
      tools.length === 1
        ? []
        : [{ field: "tool_choice", reason: "sent as a list of the one tool that is required" }],
  };
}

/** What a body is fitted by, each rule behind the changes of those before it. */
const bodyRules: readonly ((body: JsonObject, upstream: FittedUpstream) => BodyChanges)[] = [
  readableMessages,
  closedMessages,
  switchedOff,
  unforcedTool,
  knownEffort,
  unreasonedFunctions,
  takenTemperature,
  plainFormat,
  plainTools,
  unnamedChoice,
];

/** What an upstream requires of messages beside the chat dialect. */
interface MessageRules extends Omit<FittedUpstream, "reasons"> {
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
  const answersResults = hasToAnswer(rules);
  for (const [index, message] of messages.entries()) {
    if (rules.deviations.refusesEmptyTurns === true && isEmptyTurn(message)) {
      isChanged = true;
      continue;
    }
    const fit = fitMessage(message, { deviations: rules.deviations, needsReasoning, index });
    const before = fitted.at(-1);
    if (answersResults && isAfterResult(fit, before)) {
      fitted.push(acknowledgement);
      isChanged = true;
    }
    if (fit !== message) isChanged = true;
    fitted.push(fit);
  }
  return isChanged ? fitted : messages;
}

/**
 * Wire names of Mistral's models, whose templates refuse a user's turn behind a result at other
 * providers too. Sources: NousResearch/hermes-agent#20154, danny-avila/LibreChat#12429,
 * mistralai/mistral-vibe#578 (2026-05).
 */
const mistralNames = /(?:mi|mini|magi|dev|code)stral|mixtral/i;

/** Returns whether a user's turn may not follow a result. */
function hasToAnswer({
  deviations: { answersResults: rule },
  upstreamModel,
}: Omit<MessageRules, "reasons">): boolean {
  return rule === "mistral" ? mistralNames.test(upstreamModel) : rule === true;
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
export const hasMessageRules = ({
  deviations,
  upstreamModel,
}: Omit<MessageRules, "reasons">): boolean =>
  deviations.callIds !== undefined ||
  hasToAnswer({ deviations, upstreamModel }) ||
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
  if (deviations.reasoningReplay === "content") fit = withThinking(fit);
  fit = withoutFields(fit, deviations.unsupportedMessageFields);
  const calls = asArray(fit.tool_calls) ?? [];
  if (deviations.callIds !== undefined) fit = withTakenIds(fit, takenIds[deviations.callIds]);
  if (needsReasoning && calls.length > 0 && typeof fit.reasoning_content !== "string")
    fit = { ...fit, reasoning_content: "" };
  return fit;
}

/** Returns an assistant's turn with its reasoning as a part of the content. */
function withThinking(message: JsonObject): JsonObject {
  const { role, content, reasoning_content: thoughts = message.reasoning } = message;
  if (role !== "assistant" || typeof thoughts !== "string" || thoughts === "") return message;
  if (asArray(content) !== undefined) return message;
  const text =
    typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : [];
  const thinking = [{ type: "text", text: thoughts }];
  return { ...message, content: [{ type: "thinking", thinking }, ...text] };
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

type TakenId = (id: string) => string;

/** Returns a turn with ids of calls that the upstream takes; the turn itself where they all are. */
function withTakenIds(message: JsonObject, takenId: TakenId): JsonObject {
  const { tool_call_id: id, tool_calls: calls } = message;
  const list = asArray(calls);
  const isTaken = (value: unknown): boolean =>
    typeof value === "string" && takenId(value) === value;
  if (typeof id !== "string" && list === undefined) return message;
  if (
    (typeof id !== "string" || isTaken(id)) &&
    (list ?? []).every((call) => isTaken(asObject(call)?.id))
  )
    return message;
  return {
    ...message,
    ...(typeof id === "string" && { tool_call_id: takenId(id) }),
    ...(list !== undefined && {
      tool_calls: list.map((call) => {
        const fields = asObject(call);
        return fields === undefined ? call : { ...fields, id: takenId(String(fields.id ?? "")) };
      }),
    }),
  };
}

/** The most characters of an id of a call on OpenAI's chat. */
const openaiLengthMax = 40;

/** Ids by the form that an upstream takes: the id itself where it has it, or one made of its hash. */
const takenIds: Readonly<Record<NonNullable<DialectDeviations["callIds"]>, TakenId>> = {
  "nine-characters": (id) =>
    /^[a-zA-Z0-9]{9}$/.test(id) ? id : Bun.hash.wyhash(id).toString(36).padStart(9, "0").slice(-9),
  openai: (id) => cutCallId(id, openaiLengthMax),
};
