import type { Loss } from "../../canonical/request.ts";
import type { DialectDeviations, RefusedParameters } from "../deviations.ts";

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
