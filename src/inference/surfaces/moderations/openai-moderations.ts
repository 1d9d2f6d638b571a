import { fieldsOf, isObject, listOf } from "../read-fields.ts";
import { categories, flaggedAs, harmless, type Category, type Verdict } from "./categories.ts";

const byName = Object.fromEntries(categories.map((category) => [category, [category]])) as Readonly<
  Record<string, readonly Category[]>
>;

/** OpenAI's `POST /moderations`: every text in one request. Source: https://platform.openai.com/docs/api-reference/moderations */
export const openaiModerations = {
  encode: (texts: readonly string[], upstreamModel: string): object => ({
    model: upstreamModel,
    input: texts,
  }),
  /** The verdicts, a text each; undefined when the body is no answer of the dialect. */
  decode(body: object): Verdict[] | undefined {
    const results = listOf(fieldsOf(body)["results"])?.map(verdictOf);
    return results?.every((verdict) => verdict !== undefined) ? results : undefined;
  },
};

function verdictOf(result: unknown): Verdict | undefined {
  const { flagged, categories: found } = fieldsOf(result);
  if (typeof flagged !== "boolean" || !isObject(found)) return undefined;
  const labels = Object.keys(found).filter((name) => found[name] === true);
  return flagged || labels.length > 0 ? flaggedAs(labels, byName) : harmless;
}
