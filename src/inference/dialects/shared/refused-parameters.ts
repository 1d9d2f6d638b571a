import { editMembers } from "../../../platform/kernel/json/json-members.ts";
import { risingEfforts } from "../../canonical/reasoning.ts";
import type { Loss } from "../../canonical/request.ts";
import type { DialectDeviations, RefusedParameters } from "../deviations.ts";
import { asObject } from "./wire-fields.ts";

/** An upstream whose model may refuse parameters. */
interface RefusingUpstream {
  deviations: Pick<DialectDeviations, "unsupportedFields">;
  refuses: RefusedParameters | undefined;
}

/** Values that say nothing, so that leaving them out loses nothing. */
const defaults: Readonly<Record<string, unknown>> = {
  temperature: 1,
  top_p: 1,
  frequency_penalty: 0,
  presence_penalty: 0,
  repetition_penalty: 1,
  logprobs: false,
  top_logprobs: 0,
};

/** The members in which stream options and cached prefixes are no parameters of the client's. */
const quiet: ReadonlySet<string> = new Set(["stream_options"]);

/**
 * Returns the fields of a body that its upstream answers with 400, each with its loss where the
 * field says anything.
 */
export function refusedFields(
  body: Readonly<Record<string, unknown>>,
  { deviations: { unsupportedFields = [] }, refuses }: RefusingUpstream,
): { fields: readonly string[]; losses: readonly Loss[] } {
  const named =
    refuses === undefined
      ? unsupportedFields
      : [
          ...unsupportedFields,
          ...refuses.always,
          ...(isReasoningOff(body) ? [] : refuses.whileReasoning),
        ];
  const fields = named.filter((field) => body[field] !== undefined);
  if (fields.length === 0) return { fields, losses: [] };
  const lost = [...new Set(fields)].filter(
    (field) => body[field] !== null && body[field] !== defaults[field] && !quiet.has(field),
  );
  return {
    fields,
    losses: lost.map((field) => ({ field, reason: "the upstream does not take it" })),
  };
}

/** Returns whether a body of chat or Responses turns reasoning off. */
export const isReasoningOff = ({
  reasoning_effort: flat,
  reasoning,
  thinking,
}: Readonly<Record<string, unknown>>): boolean =>
  flat === "none" ||
  (Object(reasoning) as { effort?: unknown }).effort === "none" ||
  (Object(thinking) as { type?: unknown }).type === "disabled";

/** A refusal of an effort, with the efforts that the catalog declares for the model. */
interface RefusedEffort {
  code: string | null;
  /** The upstream's words, and the field that it names. */
  message: string;
  declared: readonly string[];
}

/** OpenAI's code for a model that has no efforts at all. */
const withoutEfforts = "unsupported_parameter";

/** Matches the list of efforts that a refusal names. */
const namedEfforts =
  /(?:supported values are|must be one of|expected one of|input should be)(.*)/is;

/**
 * Returns a request of chat or Responses with the least effort in place of `none`, of those that the
 * refusal names or that are declared. Undefined where the refusal is about something else.
 */
export function withoutNone(text: string, refused: RefusedEffort): string | undefined {
  const { code, message, declared } = refused;
  if (code === withoutEfforts || !/effort/i.test(message)) return undefined;
  const [, list = ""] = namedEfforts.exec(message) ?? [];
  const [effort = "low"] = [list.match(/[a-z]+/g) ?? [], declared].flatMap(risingEfforts);
  const { reasoning_effort: flat, reasoning } = JSON.parse(text) as Readonly<
    Record<string, unknown>
  >;
  if (flat === "none")
    return editMembers(text, new Map([["reasoning_effort", JSON.stringify(effort)]]));
  const nested = asObject(reasoning);
  return nested?.effort === "none"
    ? editMembers(text, new Map([["reasoning", JSON.stringify({ ...nested, effort })]]))
    : undefined;
}

/** Returns whether a client names an effort itself, in any of its fields. */
export const namesEffort = ({
  reasoning_effort: flat,
  reasoning,
}: Readonly<Record<string, unknown>>): boolean =>
  (flat ?? asObject(reasoning)?.effort ?? null) !== null;
