import type { JsonObject } from "../../canonical/json.ts";
import type { Loss } from "../../canonical/request.ts";
import {
  type BodyChanges,
  type FittedUpstream,
  plainTools,
  unchanged,
  unforcedTool,
  unnamedChoice,
  unreasonedFunctions,
} from "./functions/fit-functions.ts";
import { isReasoningOff } from "../shared/refused-parameters.ts";
import { jsonAdvice } from "../shared/tools.ts";
import { asArray, asObject, withoutUndefined } from "../shared/wire-fields.ts";
import { fitMessages, hasMessageRules } from "./messages/fit-messages.ts";
import { textAlone } from "./messages/text-alone.ts";

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
    unreasonedFunctions(body, upstream),
    plainFormat(body, upstream),
    fittedTools(body, upstream),
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

const joinedChanges = (all: readonly BodyChanges[]): BodyChanges =>
  all.every((one) => one === unchanged)
    ? unchanged
    : {
        changes: Object.assign({}, ...all.map(({ changes }) => changes)) as BodyChanges["changes"],
        losses: all.flatMap(({ losses }) => losses),
      };

/** Fits the tools, and then the choice among them. */
function fittedTools(body: JsonObject, upstream: FittedUpstream): BodyChanges {
  const plain = plainTools(body, upstream);
  const chosen = unnamedChoice({ ...body, ...plain.changes } as JsonObject, upstream);
  return joinedChanges([plain, chosen]);
}

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
