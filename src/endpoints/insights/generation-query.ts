import { z } from "zod";
import { checkBody } from "../../http/check-body.ts";
import { nanoFromUsd } from "../../platform/kernel/money.ts";
import { range, rangeDaysDefault, rangeDaysMax, rangeOf } from "./analytics-query.ts";

const generationsMax = 1_000;
const generationsDefault = 100;

const limitProblem = `must be an integer from 1 to ${generationsMax}`;
const cursorProblem = "must be the id of a generation, such as next_cursor of the page before";
const pageFields = {
  limit: z.coerce
    .number(limitProblem)
    .int(limitProblem)
    .min(1, limitProblem)
    .max(generationsMax, limitProblem)
    .default(generationsDefault),
  after: z
    .string()
    .regex(/^gen_[0-9a-f]{32}$/, cursorProblem)
    .optional(),
};

const valuesMax = 50;
const charactersMax = 300;
const textField = z
  .string()
  .min(1, "must not be empty")
  .max(charactersMax, `must have at most ${charactersMax} characters`);
const truthField = z
  .enum(["true", "false"], "must be true or false")
  .transform((text) => text === "true");

/** Several values with commas between them. */
export const valuesField = z
  .string()
  .transform((text) =>
    text
      .split(",")
      .map((value) => value.trim())
      .filter((value) => value !== ""),
  )
  .refine((values) => values.length > 0, "must name a value, or several with commas between them")
  .refine((values) => values.length <= valuesMax, `must name at most ${valuesMax} values`);

const statuses = ["completed", "cut", "cancelled", "cached", "failed"] as const;
const statusProblem = `must be among ${statuses.join(", ")}, several with commas between them`;
const statusField = valuesField.transform((values, context): (typeof statuses)[number][] => {
  if (values.some((value) => !statuses.some((status) => status === value)))
    context.addIssue({ code: "custom", message: statusProblem });
  return statuses.filter((status) => values.includes(status));
});

const costProblem = "must be a sum in USD, such as 0.01";
const latencyProblem = "must be a number of milliseconds";

const filterFields = {
  model: valuesField.optional(),
  requested_model: valuesField.optional(),
  provider: valuesField.optional(),
  key_id: valuesField.optional(),
  user_id: valuesField.optional(),
  surface: valuesField.optional(),
  status: statusField.optional(),
  error: valuesField.optional(),
  app: textField.optional(),
  session_id: textField.optional(),
  preset_id: valuesField.optional(),
  streamed: truthField.optional(),
  byok: truthField.optional(),
  min_cost: z
    .string()
    .transform((text) => nanoFromUsd(text))
    .refine((nano) => nano !== undefined, costProblem)
    .optional(),
  min_latency: z.coerce.number(latencyProblem).min(0, latencyProblem).optional(),
};

/** What requests have to have in common, as it was asked for. */
export type GenerationFilterQuery = Omit<z.infer<typeof filteredSchema>, "from" | "to">;

const filteredSchema = z.object({ ...range, ...filterFields });
const listSchema = z.object({
  ...range,
  ...filterFields,
  ...pageFields,
  id: textField.optional(),
  format: z.enum(["json", "csv"], "must be json or csv").default("json"),
});

const documentedRange = {
  from: z.string().optional().describe("Beginning of the range, an ISO 8601 date or time."),
  to: z.string().optional().describe("End of the range, exclusive; now unless it is given."),
};

const severalOf = (what: string): z.ZodOptional<z.ZodString> =>
  z.string().optional().describe(`${what}; several with commas between them.`);

const documentedFilter = {
  model: severalOf("Model that served"),
  requested_model: severalOf("Model that was asked for"),
  provider: severalOf("Provider that served or was tried last"),
  key_id: severalOf("Id of the key that asked"),
  user_id: severalOf("Id of the person whose keys asked"),
  surface: severalOf("Kind of inference, such as chat, messages or embeddings"),
  status: severalOf("How it ended: completed, cut, cancelled, cached or failed"),
  error: severalOf("Code of a failed request, such as upstream_error"),
  app: z.string().optional().describe("Title of the app, as it was sent in X-Title."),
  session_id: z.string().optional().describe("Session that the requests belong to."),
  preset_id: severalOf("Id of the preset that was named as the model"),
  streamed: z.enum(["true", "false"]).optional().describe("Streams alone, or whole answers alone."),
  byok: z
    .enum(["true", "false"])
    .optional()
    .describe("Paid by a provider key of the workspace, or not."),
  min_cost: z.string().optional().describe("Least cost in USD."),
  min_latency: z.number().optional().describe("Least duration in milliseconds."),
};

/** The query strings of what finds requests, as documents show them. */
export const generationQueries = {
  figures: z.object({ ...documentedRange, ...documentedFilter }),
  list: z.object({
    ...documentedRange,
    ...documentedFilter,
    limit: z
      .int()
      .min(1)
      .max(generationsMax)
      .optional()
      .describe("Requests on a page, 100 unless it is given."),
    after: z.string().optional().describe("The cursor of the page before."),
    id: z
      .string()
      .optional()
      .describe("One request, by any form of its id: generation, answer or trace id."),
    format: z
      .enum(["json", "csv"])
      .optional()
      .describe("csv streams every request of the range, up to 100,000."),
  }),
};

/**
 * The query of `GET /analytics/generations`; throws as above. A page is bounded, so its range need
 * not be.
 */
export function readGenerationsQuery(parameters: URLSearchParams, nowMs: number) {
  const {
    limit,
    after,
    id,
    format,
    from = 0,
    to,
    ...filter
  } = checkBody(listSchema, Object.fromEntries(parameters));
  const range = rangeOf(
    { from, to },
    { nowMs: nowMs + 1, daysDefault: 0, daysMax: Number.POSITIVE_INFINITY },
  );
  return { limit, after, id, format, filter, ...range };
}

/** The query of what adds requests up; throws as above. */
export function readFiguresQuery(
  parameters: URLSearchParams,
  { nowMs, daysMax = rangeDaysMax.day }: { nowMs: number; daysMax?: number },
) {
  const { from, to, ...filter } = checkBody(filteredSchema, Object.fromEntries(parameters));
  return {
    filter,
    ...rangeOf({ from, to }, { nowMs: nowMs + 1, daysDefault: rangeDaysDefault, daysMax }),
  };
}
