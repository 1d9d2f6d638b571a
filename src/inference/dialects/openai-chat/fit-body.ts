import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { Loss } from "../../canonical/request.ts";
import type { DialectDeviations } from "../dialect.ts";
import { isReasoningOff } from "../shared/refused-parameters.ts";
import { jsonAdvice } from "../shared/tools.ts";
import { asArray, asObject, withoutUndefined } from "../shared/wire-fields.ts";
import { fitMessages, hasMessageRules } from "./messages/fit-messages.ts";
import { textAlone } from "./messages/text-alone.ts";

/** The upstream that a chat body is fitted to. */
interface FittedUpstream {
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

/**
 * Returns what has to change in a body for an upstream: its messages, and a tool that a model which
 * reasons cannot be forced to call.
 */
export function bodyChanges(sent: JsonObject, upstream: FittedUpstream): BodyChanges {
  const readable = readableMessages(sent, upstream);
  const body = readable === unchanged ? sent : { ...sent, messages: readable.changes["messages"] };
  const unforced = joinedChanges([
    readable,
    unforcedTool(body, upstream),
    plainFormat(body, upstream),
    plainTools(body, upstream),
  ]);
  const reasons = upstream.reasons && !isReasoningOff({ ...body, ...unforced.changes });
  const rules = { deviations: upstream.deviations, reasons };
  const messages = hasMessageRules(rules)
    ? asArray(unforced.changes["messages"] ?? body.messages)
    : undefined;
  if (messages === undefined) return unforced;
  const objects = messages.map((message) => asObject(message) ?? {});
  const fitted = fitMessages(objects, rules);
  return fitted === objects
    ? unforced
    : { ...unforced, changes: { ...unforced.changes, messages: fitted } };
}

const unchanged: BodyChanges = { changes: {}, losses: [] };

const joinedChanges = (all: readonly BodyChanges[]): BodyChanges =>
  all.every((one) => one === unchanged)
    ? unchanged
    : {
        changes: Object.assign({}, ...all.map(({ changes }) => changes)) as BodyChanges["changes"],
        losses: all.flatMap(({ losses }) => losses),
      };

/** Leaves out what an upstream that reads text alone refuses. */
function readableMessages(body: JsonObject, { deviations }: FittedUpstream): BodyChanges {
  const text = deviations.readsTextAlone === true && textAlone(asArray(body.messages) ?? []);
  if (text === false || text === undefined) return unchanged;
  return { changes: { messages: text.messages }, losses: text.losses };
}

/** Asks in words for the schema of an answer that the upstream enforces as JSON alone. */
function plainFormat(body: JsonObject, { deviations }: FittedUpstream): BodyChanges {
  const format = asObject(body.response_format);
  if (deviations.jsonWithoutSchema !== true || format?.type !== "json_schema") return unchanged;
  const advice = jsonAdvice(asObject(asObject(format.json_schema)?.schema));
  const messages = asArray(body.messages) ?? [];
  return {
    changes: {
      response_format: { type: "json_object" },
      messages: [{ role: "system", content: advice }, ...messages],
    },
    losses: [{ field: "response_format", reason: "the schema is described, not enforced" }],
  };
}

/** Leaves out members of functions that the upstream refuses. */
function plainTools(body: JsonObject, { deviations }: FittedUpstream): BodyChanges {
  const { unsupportedToolFields: fields } = deviations;
  const tools = fields === undefined ? undefined : asArray(body.tools);
  if (fields === undefined || tools === undefined) return unchanged;
  const losses: Loss[] = [];
  let isChanged = false;
  const plain = tools.map((tool, index) => {
    const definition = asObject(asObject(tool)?.function);
    const found = fields.filter((field) => definition?.[field] !== undefined);
    if (definition === undefined || found.length === 0) return tool;
    isChanged = true;
    for (const field of found.filter((name) => definition[name] === true))
      losses.push({
        field: `tools[${index}].${field}`,
        reason: "the upstream does not take it",
      });
    return {
      ...asObject(tool),
      function: Object.fromEntries(
        Object.entries(definition).filter(([name]) => !found.includes(name)),
      ),
    };
  });
  return isChanged ? { changes: { tools: plain }, losses } : unchanged;
}

/**
 * Turns reasoning off for a forced tool where the model can, and otherwise lets the model choose
 * among the tools.
 */
function unforcedTool(
  body: JsonObject,
  { deviations: { unforcedWhileReasoning }, reasons, upstreamModel }: FittedUpstream,
): BodyChanges {
  const { tool_choice: choice } = body;
  const isForced = choice === "required" || asObject(choice)?.type === "function";
  if (unforcedWhileReasoning === undefined || !reasons || !isForced || isReasoningOff(body))
    return unchanged;
  if (unforcedWhileReasoning.alwaysReasons.test(upstreamModel))
    return {
      changes: { tool_choice: "auto" },
      losses: [{ field: "tool_choice", reason: "a model that reasons chooses its tools itself" }],
    };
  return {
    changes: { thinking: { type: "disabled" }, reasoning_effort: undefined },
    losses: [
      {
        field: "reasoning",
        reason: "the model cannot think where it is forced to call a tool",
      },
    ],
  };
}
