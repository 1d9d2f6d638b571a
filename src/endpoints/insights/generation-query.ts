import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { wholeNumberField } from "../account/account-fields.ts";
import { nanoFromUsd, usdFromNano } from "../../platform/kernel/money.ts";
import { range, rangeDaysDefault, rangeDaysMax, rangeOf } from "./analytics-query.ts";
import { lazily, type AnswerOf } from "../../http/endpoint.ts";
import type { GenerationRecord } from "../../insights/generation-record.ts";
import type { KeyCreator } from "../../identity/keys/llm-key-store.ts";
import type { CsvValue } from "./csv.ts";

const generationsMax = 1_000;
const generationsDefault = 100;

const limitProblem = `must be an integer from 1 to ${generationsMax}`;
const cursorProblem = "must be the id of a generation, such as next_cursor of the page before";
/** The most requests that an offset leaves out, all of which are read. */
const offsetMax = 10_000;
const offsetProblem = `must be an integer from 0 to ${offsetMax}; use cursor to go further`;
const cursorField = z.string().regex(/^gen_[0-9a-f]{32}$/, cursorProblem);

const valuesMax = 50;
const charactersMax = 300;
const textField = z
  .string()
  .min(1, "must not be empty")
  .max(charactersMax, `must have at most ${charactersMax} characters`);
const truthField = z
  .enum(["true", "false"], "must be true or false")
  .transform((text) => text === "true");

/** Several values, separated by commas. */
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
/** The largest cost, in nano-USD, that columns of both databases can be compared with. */
const costNanoMax = 2n ** 63n - 1_024n;

const severalOf = (what: string) =>
  valuesField.optional().describe(`${what}; separate several with commas.`);

const filteredSchema = z.object({
  from: range.from.describe("Beginning of the range, an ISO 8601 date or time."),
  to: range.to.describe("End of the range, exclusive. Default: now."),
  model: severalOf("Model that served"),
  requested_model: severalOf("Requested model"),
  provider: severalOf("Provider that served or was tried last"),
  key_id: severalOf("Id of the key that made the request"),
  user_id: severalOf("Id of the person whose key made the request"),
  team_id: severalOf("Id of the team of the key that made the request"),
  surface: severalOf("Kind of inference, such as chat, messages or embeddings"),
  status: statusField
    .optional()
    .describe(
      "Outcome: completed, cut, cancelled, cached or failed; separate several with commas.",
    ),
  error: severalOf("Error code of a failed request, such as upstream_error"),
  app: textField.optional().describe("Name of the app, as sent in X-Title."),
  session_id: textField.optional().describe("Id of the session of the requests."),
  preset_id: severalOf("Id of the preset that was requested as the model"),
  batch_id: severalOf("Id of the batch whose lines the requests were, in either form"),
  streamed: truthField.optional().describe("true: streams only. false: other answers only."),
  byok: truthField
    .optional()
    .describe("true: paid with a provider key of the workspace. false: others."),
  min_cost: z
    .string()
    .transform((text) => nanoFromUsd(text))
    .refine((nano) => nano !== undefined && nano >= 0n && nano <= costNanoMax, costProblem)
    .optional()
    .describe("Minimum cost in USD."),
  min_latency: z.coerce
    .number(latencyProblem)
    .min(0, latencyProblem)
    .max(Number.MAX_SAFE_INTEGER, latencyProblem)
    // Whole milliseconds are stored, and Postgres compares them with no others.
    .transform(Math.ceil)
    .optional()
    .describe("Minimum duration in milliseconds."),
});

/** The conditions of a search, as they were requested. */
export type GenerationFilterQuery = Omit<z.infer<typeof filteredSchema>, "from" | "to">;

const listSchema = filteredSchema.extend({
  limit: wholeNumberField([1, generationsMax], limitProblem)
    .default(generationsDefault)
    .describe("Number of requests on a page."),
  cursor: cursorField.optional().describe("The `next_cursor` of the previous page."),
  after: cursorField.optional().describe("Another name of cursor."),
  offset: wholeNumberField([0, offsetMax], offsetProblem)
    .default(0)
    .describe("Number of requests to leave out, where no cursor is sent."),
  id: textField.optional().describe("A single request, by its generation, answer or trace id."),
  format: z
    .enum(["json", "csv"], "must be json or csv")
    .default("json")
    .describe("csv streams every request of the range, up to 100,000."),
});

/** The query strings of searches. */
export const generationQueries = { figures: filteredSchema, list: listSchema };

/**
 * Reads the query of `GET /analytics/generations`. Throws as above. A page is bounded, so its range
 * need not be.
 */
export function readGenerationsQuery(parameters: URLSearchParams, nowMs: number) {
  const {
    limit,
    cursor,
    after = cursor,
    offset,
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
  return { limit, after, offset, id, format, filter, ...range };
}

/** Reads the query of sums over requests. Throws as above. */
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

/** A request in a list. */
export const generationRowSchema = lazily(() =>
  z
    .object({
      id: z
        .string()
        .describe("`gen_` id, for GET /generation/{id} and GET /generation/{id}/explain."),
      object: z.literal("generation"),
      created_at: z.string().describe("When the request arrived (UTC)."),
      key_id: z.string(),
      key_name: z
        .string()
        .nullable()
        .describe("Name of the key that made the request; null if it is unknown."),
      user_id: z.string().nullable().describe("Id of the key's creator."),
      team_id: z.string().nullable().describe("Id of the team of the key; null for none."),
      surface: z.string().describe("Kind of inference, such as chat, messages or embeddings."),
      model: z.string().describe("Model that served or was tried last."),
      requested_model: z.string(),
      provider_name: z
        .string()
        .nullable()
        .describe("Provider that served or was tried last; null if none was tried."),
      upstream_model: z.string().nullable().describe("The provider's name for the model."),
      status: z.enum(["completed", "cut", "cancelled", "cached", "failed"]),
      error: z
        .object({ code: z.string(), status: z.int() })
        .nullable()
        .describe("Error that a failed request was answered with."),
      finish_reason: z.string().nullable(),
      streamed: z.boolean(),
      attempts: z.int().describe("Number of attempts at providers."),
      fallback: z.boolean().describe("Whether another provider or model was tried first."),
      tokens_prompt: z.int(),
      tokens_completion: z.int(),
      tokens_cached: z.int().describe("Prompt tokens that were read from the provider's cache."),
      tokens_reasoning: z.int().describe("Completion tokens that were reasoning."),
      total_cost: z.number().describe("Charge in USD."),
      credential_source: z
        .string()
        .describe("Owner of the provider key: platform, own_byok or pool."),
      is_byok: z
        .boolean()
        .describe("Whether the request was paid with a provider key of the workspace."),
      app_title: z.string().nullable().describe("Name of the app, from X-Title."),
      origin: z.string().nullable().describe("URL of the app, from HTTP-Referer."),
      session_id: z.string().nullable(),
      preset_id: z.string().nullable().describe("Preset that was requested as the model."),
      batch_id: z
        .string()
        .nullable()
        .describe("Batch whose line the request was; null for other requests."),
      latency: z
        .number()
        .describe(
          "Milliseconds until the first content of a stream, or until the complete answer.",
        ),
      total_time: z.number().describe("Milliseconds until the end of the answer."),
    })
    .meta({ id: "GenerationRow" }),
);

/** Returns a record as one line of a list. */
export function generationRow(
  record: GenerationRecord,
  keys: ReadonlyMap<string, KeyCreator>,
): AnswerOf<typeof generationRowSchema> {
  const { detail, attempts } = record;
  const key = keys.get(record.keyId);
  return {
    id: record.id,
    object: "generation",
    created_at: new Date(record.createdAtMs).toISOString(),
    key_id: record.keyId,
    key_name: key?.name ?? null,
    user_id: key?.creatorUserId ?? null,
    team_id: detail.team ?? null,
    surface: record.surface,
    model: record.model,
    requested_model: record.requestedModel,
    provider_name: record.provider || null,
    upstream_model: record.upstreamModel || null,
    status: record.status,
    error: detail.error ?? null,
    finish_reason: record.finishReason,
    streamed: record.streamed,
    attempts: attempts.length,
    fallback: attempts.length > 1,
    tokens_prompt: record.promptTokens,
    tokens_completion: record.completionTokens,
    tokens_cached: detail.usage["cacheReadTokens"] ?? 0,
    tokens_reasoning: detail.usage["reasoningTokens"] ?? 0,
    total_cost: usdFromNano(record.costNanoUsd),
    credential_source: detail.credentialSource ?? "platform",
    is_byok: detail.credentialSource === "own_byok",
    app_title: detail.appTitle ?? null,
    origin: detail.origin ?? null,
    session_id: detail.sessionId ?? null,
    preset_id: detail.presetId ?? null,
    batch_id: detail.batchId ?? null,
    latency: record.firstTokenMs ?? record.latencyMs,
    total_time: record.latencyMs,
  };
}

/** The columns of a table of requests: the members of a row, with the error by its code. */
export const rowColumns = lazily((): readonly string[] =>
  Object.keys(generationRowSchema().shape).filter((name) => name !== "object"),
);

/** Returns the cells of a row in the order of `rowColumns`. */
export function rowCells({ error, ...row }: AnswerOf<typeof generationRowSchema>): CsvValue[] {
  const cells: Readonly<Record<string, CsvValue>> = { ...row, error: error?.code ?? null };
  return rowColumns().map((name) => cells[name] ?? null);
}
