import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { type Answer, Reply } from "../../http/reply.ts";
import {
  type GenerationFilter,
  type GenerationRange,
  pageAtOffset,
} from "../../insights/generation-search.ts";
import type { GenerationRecord } from "../../insights/generation-record.ts";
import { badField, type GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { workspaceOf } from "../account/account-fields.ts";
import { listSchema } from "../account/list-pages.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import type { Dependencies } from "../dependencies.ts";
import { csvHeaders, csvLine } from "./csv.ts";
import {
  generationQueries,
  readFiguresQuery,
  readGenerationsQuery,
  generationRow,
  generationRowSchema,
  rowCells,
  rowColumns,
  type GenerationFilterQuery,
} from "./generation-query.ts";
import { forAnalytics } from "./analytics-query.ts";

const isoText = (atMs: number): string => new Date(atMs).toISOString();

/**
 * Returns the filter of a query. A person's requests are those of the keys that the person created;
 * `created` has the ids of these.
 */
export function filterOf(
  query: GenerationFilterQuery,
  created: readonly string[],
): GenerationFilter {
  const { user_id: userIds, key_id: keyIds } = query;
  const ofUsers = created.filter((id) => keyIds?.includes(id) ?? true);
  return {
    models: query.model,
    requestedModels: query.requested_model,
    providers: query.provider,
    keyIds: userIds === undefined ? keyIds : ofUsers,
    surfaces: query.surface,
    statuses: query.status,
    errors: query.error,
    teamIds: query.team_id,
    appTitle: query.app,
    sessionId: query.session_id,
    presetIds: query.preset_id,
    // Clients of either form, and the dashboard, name a batch as they know it.
    batchIds: query.batch_id?.flatMap((id) => {
      const bare = id.replace(/^msg(?=batch_)/, "");
      return [bare, `msg${bare}`];
    }),
    streamed: query.streamed,
    byok: query.byok,
    costNanoMin: query.min_cost,
    latencyMsMin: query.min_latency,
  };
}

/** Returns the workspace's range of a query. */
async function rangeFor(
  context: RequestContext<undefined, KnownCaller>,
  { llmKeys }: Pick<Dependencies, "llmKeys">,
  { fromMs, toMs, filter }: { fromMs: number; toMs: number; filter: GenerationFilterQuery },
): Promise<GenerationRange> {
  const workspaceId = workspaceOf(context).id;
  const created = await llmKeys.createdBy(workspaceId, filter.user_id ?? []);
  return { workspaceId, fromMs, toMs, filter: filterOf(filter, created) };
}

/** Returns records of a workspace as lines, with the names of their keys. */
async function rowsOf(
  records: readonly GenerationRecord[],
  { llmKeys, workspaceId }: Pick<Dependencies, "llmKeys"> & { workspaceId: string },
) {
  const ids = records.map(({ keyId }) => keyId);
  const keys = await llmKeys.creatorsOf(workspaceId, ids);
  return records.map((record) => generationRow(record, keys));
}

/** Lists the requests of the workspace, newest first, by page or as a table. */
export const generationAnalytics = defineEndpoint({
  ...forAnalytics,
  path: "/analytics/generations",
  summary: "List the requests of the workspace, newest first.",
  description:
    "Requests must match all filters. next_cursor, sent as cursor, returns older requests. If few requests match the filters, a page " +
    "may have fewer entries than limit, or none, and still have a next_cursor that continues the search.",
  query: generationQueries.list,
  otherResponseTypes: ["text/csv"],
  response: () => listSchema(generationRowSchema()),
  async handle(
    context,
    deps: Pick<Dependencies, "llmKeys" | "generations" | "insights" | "clock">,
  ) {
    const { limit, after, offset, id, format, ...query } = readGenerationsQuery(
      context.query,
      deps.clock.nowMs(),
    );
    const range = await rangeFor(context, deps, query);
    if (offset > 0 && format === "csv") throw noTableOffset();
    if (format === "csv" && id === undefined) return table(context, { deps, range, after });
    const found = id === undefined ? undefined : await deps.generations.find(range.workspaceId, id);
    const { records, next } =
      id === undefined
        ? await pageAtOffset({ after, limit, offset }, (page) =>
            deps.insights.search.page({ ...range, ...page }),
          )
        : { records: found === undefined ? [] : [found], next: undefined };
    return context.json({
      object: "list",
      data: await rowsOf(records, { ...deps, ...range }),
      has_more: next !== undefined,
      next_cursor: next ?? null,
    });
  },
});

const noTableOffset = (): GatewayError =>
  badField("offset", "format=csv has none. Use cursor or a range instead.");

const tableRowsMax = 100_000;
const tablePageRows = 1_000;

/**
 * Returns every request that meets the filters as one table, which is read page by page as the
 * client takes it.
 */
function table(
  context: RequestContext<undefined, KnownCaller>,
  {
    deps,
    range,
    after,
  }: {
    deps: Pick<Dependencies, "insights" | "llmKeys">;
    range: GenerationRange;
    after: string | undefined;
  },
): Answer {
  let cursor = after;
  let rows = 0;
  let state: "head" | "rows" | "over" = "head";
  const source = {
    async next(): Promise<string | undefined> {
      if (state === "head") {
        state = "rows";
        return csvLine(rowColumns());
      }
      while (state === "rows") {
        const text = await page().catch(() => {
          state = "over";
          return csvLine(["The table ends here: the rest could not be read. Ask again."]);
        });
        if (text !== "") return text;
      }
      return undefined;
    },
    cancel() {
      state = "over";
    },
  };
  async function page(): Promise<string> {
    const { records, next } = await deps.insights.search.page({
      ...range,
      after: cursor,
      limit: Math.min(tablePageRows, tableRowsMax - rows),
    });
    rows += records.length;
    cursor = next;
    const rowsOfPage = await rowsOf(records, { ...deps, ...range });
    const text = rowsOfPage.map((row) => csvLine(rowCells(row))).join("");
    if (next === undefined) state = "over";
    if (next === undefined || rows < tableRowsMax) return text;
    state = "over";
    return (
      text +
      csvLine([
        `The table ends here: it has ${tableRowsMax} requests at most. Ask again with cursor=${next}.`,
      ])
    );
  }
  return new Reply(source, { headers: { ...context.headers, ...csvHeaders("requests.csv") } });
}

const bucketSchema = lazily(() =>
  z.object({
    bucket: z.string().describe("Beginning of the bucket (UTC)."),
    requests: z.int(),
    errors: z.int(),
    tokens: z.int(),
    cost: z.number(),
  }),
);

export const generationHistogram = defineEndpoint({
  ...forAnalytics,
  path: "/analytics/generations/histogram",
  summary: "Sum up requests over time.",
  description:
    "Takes the filters of GET /analytics/generations. Default range: the last 7 days; at most 366 days and 120 buckets. Buckets " +
    "without requests are omitted. With filters by key, model and provider, every request is counted. With other filters, only the " +
    "newest 60,000 requests are; counted_from is then the time from which they are counted, if it is later than from.",
  query: generationQueries.figures,
  response: () =>
    z.object({
      object: z.literal("histogram"),
      from: z.string(),
      to: z.string(),
      bucket_seconds: z.int(),
      data: z.array(bucketSchema()),
      totals: bucketSchema().omit({ bucket: true }),
      complete: z.boolean().describe("Whether every request of the range was counted."),
      counted_from: z
        .string()
        .nullable()
        .describe("Time from which requests were counted, if complete is false."),
    }),
  async handle(context, deps: Pick<Dependencies, "llmKeys" | "insights" | "clock">) {
    const query = readFiguresQuery(context.query, { nowMs: deps.clock.nowMs() });
    const range = await rangeFor(context, deps, query);
    const { bucketMs, buckets, countedFromMs } = await deps.insights.figures.histogram(
      range,
      deps.clock.nowMs(),
    );
    const totals = { requests: 0, errors: 0, tokens: 0 };
    let costNano = 0n;
    for (const bucket of buckets) {
      totals.requests += bucket.requests;
      totals.errors += bucket.errors;
      totals.tokens += bucket.tokens;
      costNano += bucket.costNanoUsd;
    }
    return context.json({
      object: "histogram",
      from: isoText(query.fromMs),
      to: isoText(query.toMs),
      bucket_seconds: bucketMs / 1_000,
      data: buckets.map(({ startMs, costNanoUsd, ...sums }) => ({
        bucket: isoText(startMs),
        ...sums,
        cost: usdFromNano(costNanoUsd),
      })),
      totals: { ...totals, cost: usdFromNano(costNano) },
      complete: countedFromMs === undefined,
      counted_from: countedFromMs === undefined ? null : isoText(countedFromMs),
    });
  },
});

const latencyDaysMax = 90;

/** Returns the value that a share of the sorted values does not exceed; null without values. */
const percentile = (sorted: readonly number[], share: number): number | null =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;

const percentilesOf = (sorted: readonly number[]) => ({
  p50: percentile(sorted, 0.5),
  p95: percentile(sorted, 0.95),
  p99: percentile(sorted, 0.99),
});

const percentilesSchema = lazily(() =>
  z.object({
    p50: z.number().nullable(),
    p95: z.number().nullable(),
    p99: z.number().nullable(),
  }),
);

export const latencyAnalytics = defineEndpoint({
  ...forAnalytics,
  path: "/analytics/latency",
  summary: "Show the latency of requests over time.",
  description:
    "Takes the filters of GET /analytics/generations. Default range: the last 7 days; at most 90 days and 60 buckets. Covers " +
    "completed requests only, in milliseconds: first_token until the first content of a stream, total until the end of the answer. " +
    "Each bucket is a sample of up to 200 requests from each of its quarters.",
  query: generationQueries.figures,
  response: () =>
    z.object({
      object: z.literal("list"),
      from: z.string(),
      to: z.string(),
      bucket_seconds: z.int(),
      data: z.array(
        z.object({
          bucket: z.string(),
          samples: z.int(),
          first_token: percentilesSchema(),
          total: percentilesSchema(),
        }),
      ),
    }),
  async handle(context, deps: Pick<Dependencies, "llmKeys" | "insights" | "clock">) {
    const query = readFiguresQuery(context.query, {
      nowMs: deps.clock.nowMs(),
      daysMax: latencyDaysMax,
    });
    const range = await rangeFor(context, deps, query);
    const { bucketMs, buckets } = await deps.insights.figures.latencies(range);
    return context.json({
      object: "list",
      from: isoText(query.fromMs),
      to: isoText(query.toMs),
      bucket_seconds: bucketMs / 1_000,
      data: buckets.map(({ startMs, samples, firstTokenMs, latencyMs }) => ({
        bucket: isoText(startMs),
        samples,
        first_token: percentilesOf(firstTokenMs),
        total: percentilesOf(latencyMs),
      })),
    });
  },
});

/**
 * Returns errors by code, provider and model, and what was refused before a provider was called.
 */
export const errorAnalytics = defineEndpoint({
  ...forAnalytics,
  path: "/analytics/errors",
  summary: "Show failures by code, provider and model.",
  description:
    "Takes the filters of GET /analytics/generations; refused requests match key_id, user_id, error and status. " +
    "Default range: the last 7 days; at most 366. " +
    "data has the requests that failed, were cut or were cancelled, most frequent first, among the newest " +
    "60,000. refused counts requests that a limit, a budget or the balance refused; these have no record.",
  query: generationQueries.figures,
  response: () =>
    z.object({
      object: z.literal("list"),
      from: z.string(),
      to: z.string(),
      data: z.array(
        z.object({
          status: z.enum(["cut", "cancelled", "failed"]),
          code: z.string().nullable(),
          http_status: z.int().nullable(),
          provider: z.string().nullable(),
          model: z.string(),
          requests: z.int(),
          last_at: z.string(),
        }),
      ),
      refused: z.array(
        z.object({
          code: z.string(),
          http_status: z.int(),
          key_id: z.string(),
          key_name: z.string().nullable(),
          requests: z.int(),
        }),
      ),
    }),
  async handle(context, deps: Pick<Dependencies, "llmKeys" | "insights" | "clock">) {
    const query = readFiguresQuery(context.query, { nowMs: deps.clock.nowMs() });
    const range = await rangeFor(context, deps, query);
    const [lines, refused] = await Promise.all([
      deps.insights.figures.errors(range),
      deps.insights.refused.sums(range),
    ]);
    const ids = refused.map(({ keyId }) => keyId);
    const keys = await deps.llmKeys.creatorsOf(range.workspaceId, ids);
    return context.json({
      object: "list",
      from: isoText(query.fromMs),
      to: isoText(query.toMs),
      data: lines.map(({ httpStatus, lastAtMs, provider, ...line }) => ({
        ...line,
        http_status: httpStatus,
        provider: provider || null,
        last_at: isoText(lastAtMs),
      })),
      refused: refused.map(({ code, status, keyId, requests }) => ({
        code,
        http_status: status,
        key_id: keyId,
        key_name: keys.get(keyId)?.name ?? null,
        requests,
      })),
    });
  },
});
