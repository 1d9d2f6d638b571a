import { hourMs } from "../../platform/kernel/clock.ts";
import {
  bucketOf,
  errorLineOf,
  errorLinesMax,
  samplesPerSlice,
  slicesPerBucket,
  type ErrorLine,
  type FigureBucket,
  type LatencyBucket,
} from "../generation-figures.ts";
import {
  idAfter,
  lowestIdAt,
  recordOfRow,
  timeOfId,
  type GenerationRecord,
} from "../generation-record.ts";
import { type GenerationFilter, type GenerationRange, newerOf } from "../generation-search.ts";
import {
  intervals,
  lineOf,
  rowsAnsweredMax,
  type UsageLine,
  type UsageQuery,
} from "../usage/usage-store.ts";
import type { ArchiveClient, ArchiveParameters } from "./archive-client.ts";
import { archivedId, archiveTable, recordSql, storedRow } from "./archive-tables.ts";

/** A range of ids, whose end is exclusive. */
interface Window extends Pick<GenerationRange, "workspaceId" | "filter"> {
  low: string;
  end: string;
}

/** The factor by which the span grows in which a page is searched, starting at an hour. */
const spanGrowth = 8;

const usageSums = [
  "toString(count()) as requests",
  "toString(countIf(status in ('cut', 'failed'))) as errors",
  "toString(sum(prompt_tokens)) as prompt_tokens",
  "toString(sum(completion_tokens)) as completion_tokens",
  "toString(sum(cached_tokens)) as cached_tokens",
  "toString(sum(reasoning_tokens)) as reasoning_tokens",
  "toString(sum(cost_nano)) as cost_nano",
];
const usageNames = usageSums.map((text) => text.slice(text.lastIndexOf(" ") + 1));

/** A query with its parameters, which are named in the order in which they are bound. */
class Question {
  readonly parameters: ArchiveParameters = {};

  /** Binds a value and returns its placeholder. */
  bind(type: string, value: string | number | readonly string[]): string {
    const name = `p${Object.keys(this.parameters).length}`;
    this.parameters[name] = value;
    return `{${name}:${type}}`;
  }

  /** Returns the records of a window, without duplicates. */
  within({ workspaceId, low, end, filter }: Window): string {
    return `${archiveTable} final where workspace_id = ${this.bind("String", workspaceId)}
      and id >= ${this.bind("UInt128", boundOf(low))} and id < ${this.bind("UInt128", boundOf(end))}
      and ${this.meeting(filter)}`;
  }

  /** Returns the archive's condition of a filter, equivalent to `conditionOf` in the row store. */
  meeting(filter: GenerationFilter): string {
    const conditions: string[] = [];
    const lists = {
      model: filter.models,
      requested_model: filter.requestedModels,
      provider: filter.providers,
      key_id: filter.keyIds,
      surface: filter.surfaces,
      status: filter.statuses,
      error_code: filter.errors,
      "JSONExtractString(detail, 'presetId')": filter.presetIds,
      "JSONExtractString(detail, 'batchId')": filter.batchIds,
      "JSONExtractString(detail, 'team')": filter.teamIds,
    };
    for (const [name, values] of Object.entries(lists))
      if (values !== undefined)
        conditions.push(
          values.length === 0 ? "1 = 0" : `${name} in ${this.bind("Array(String)", values)}`,
        );
    const texts = { app_title: filter.appTitle, session_id: filter.sessionId };
    for (const [name, value] of Object.entries(texts))
      if (value !== undefined) conditions.push(`${name} = ${this.bind("String", value)}`);
    if (filter.streamed !== undefined) conditions.push(`streamed = ${filter.streamed ? 1 : 0}`);
    if (filter.byok !== undefined)
      conditions.push(`credential_source ${filter.byok ? "=" : "<>"} 'own_byok'`);
    if (filter.costNanoMin !== undefined)
      conditions.push(`cost_nano >= ${this.bind("Int64", filter.costNanoMin.toString())}`);
    if (filter.latencyMsMin !== undefined)
      conditions.push(`latency_ms >= ${this.bind("Int64", filter.latencyMsMin)}`);
    return conditions.length === 0 ? "1 = 1" : conditions.join(" and ");
  }
}

/** Converts an id, or the beginning of one, to the archive's form for comparison. */
function boundOf(id: string): string {
  const [, digits = ""] = /^gen_([0-9a-f]{0,32})/.exec(id) ?? [];
  return archivedId(`gen_${digits.padEnd(32, "0")}`);
}

const windowOf = ({ workspaceId, filter, fromMs, toMs }: GenerationRange): Window => ({
  workspaceId,
  filter,
  low: lowestIdAt(fromMs),
  end: lowestIdAt(toMs),
});

/**
 * Answers from the archive what the row store answers otherwise. The answers are equal for the same
 * records, except that no query here is limited to a number of records. Rejects with
 * `ArchiveUnavailableError`.
 */
export class ArchiveReads {
  constructor(private readonly client: ArchiveClient) {}

  /** Returns a workspace's record by its id. */
  async find(workspaceId: string, id: string): Promise<GenerationRecord | undefined> {
    const [record] = await this.page(
      {
        workspaceId,
        filter: {},
        low: id,
        end: idAfter(id) ?? id,
      },
      1,
    );
    return record;
  }

  /**
   * Returns records of a window, newest first. A small page is searched in the newest part first.
   */
  async page(window: Window, limit: number): Promise<GenerationRecord[]> {
    const found: GenerationRecord[] = [];
    for (let { end } = window, spanMs = hourMs; ; spanMs *= spanGrowth) {
      const endMs = timeOfId(end);
      if (Number.isNaN(endMs)) return found;
      const low = newerOf(window.low, lowestIdAt(endMs - spanMs));
      if (low >= end) return found;
      const part = await this.newest({ ...window, low, end }, limit - found.length);
      found.push(...part);
      if (found.length >= limit || low === window.low) return found;
      end = low;
    }
  }

  private async newest(window: Window, limit: number): Promise<GenerationRecord[]> {
    const question = new Question();
    const rows = await this.client.query<Parameters<typeof storedRow>[0]>(
      `select ${recordSql} from ${question.within(window)}
       order by workspace_id desc, ${archiveTable}.id desc limit ${limit}`,
      question.parameters,
    );
    return rows.map((row) => recordOfRow(storedRow(row)));
  }

  /** Returns sums by bucket and group, oldest first; undefined where they exceed one answer. */
  async sums(query: UsageQuery): Promise<UsageLine[] | undefined> {
    const { workspaceId, interval, groupBy } = query;
    const lengthMs = intervals[interval];
    const fromMs = Math.floor(query.fromMs / lengthMs) * lengthMs;
    const toMs = Math.ceil(query.toMs / lengthMs) * lengthMs;
    const question = new Question();
    const groups = ["bucket", ...groupBy].join(", ");
    const rows = await this.client.query<Record<string, string>>(
      `select intDiv(created_at_ms, ${lengthMs}) as ${[groups, ...usageSums].join(", ")}
       from ${archiveTable} final where workspace_id = ${question.bind("String", workspaceId)}
         and created_at_ms >= ${question.bind("Int64", fromMs)} and created_at_ms < ${question.bind("Int64", toMs)}
       group by ${groups} order by ${groups} limit ${rowsAnsweredMax + 1}`,
      question.parameters,
    );
    if (rows.length > rowsAnsweredMax) return undefined;
    const names = ["bucket", ...groupBy, ...usageNames];
    return rows.map((row) =>
      lineOf(
        names.map((name) => row[name] ?? ""),
        query,
      ),
    );
  }

  /** Returns requests, errors, tokens and cost by bucket. */
  async histogram(range: GenerationRange, bucketMs: number): Promise<FigureBucket[]> {
    const question = new Question();
    const rows = await this.client.query<Parameters<typeof bucketOf>[0]>(
      `select intDiv(created_at_ms, ${bucketMs}) as bucket, count() as requests,
         countIf(status in ('cut', 'failed')) as errors,
         sum(prompt_tokens + completion_tokens) as tokens, sum(cost_nano) as cost_nano
       from ${question.within(windowOf(range))} group by bucket order by bucket`,
      question.parameters,
    );
    return rows.map((row) => bucketOf(row, bucketMs));
  }

  /** Returns errors, most frequent first. */
  async errors(range: GenerationRange): Promise<ErrorLine[]> {
    const question = new Question();
    const rows = await this.client.query<Parameters<typeof errorLineOf>[0]>(
      `select status, nullIf(error_code, '') as code, nullIf(error_status, 0) as http_status,
         provider, model, count() as requests, max(created_at_ms) as last_at_ms
       from ${question.within(windowOf(range))} and status not in ('completed', 'cached')
       group by status, code, http_status, provider, model
       order by requests desc, last_at_ms desc limit ${errorLinesMax}`,
      question.parameters,
    );
    return rows.map(errorLineOf);
  }

  /** Returns latencies by bucket, sampled from the first records of four slices of each. */
  async latencies(range: GenerationRange, bucketMs: number): Promise<LatencyBucket[]> {
    const question = new Question();
    const { filter, ...unfiltered } = windowOf(range);
    const records = question.within({ ...unfiltered, filter: {} });
    const rows = await this.client.query<{
      bucket: string;
      samples: string;
      latency: string[];
      first: (string | null)[];
    }>(
      `select intDiv(at_ms, ${bucketMs}) as bucket, count() as samples,
         arraySort(groupArray(latency_ms)) as latency,
         arraySort(groupArray(first_token_ms)) as first
       from (
         select *, error_code, app_title, session_id, credential_source,
           toInt64(bitShiftRight(id, 80)) as at_ms
         from ${records}
         order by workspace_id, id limit ${samplesPerSlice} by intDiv(at_ms, ${bucketMs / slicesPerBucket})
       ) where status = 'completed' and ${question.meeting(filter)}
       group by bucket order by bucket`,
      question.parameters,
    );
    return rows.map((row) => ({
      startMs: Number(row.bucket) * bucketMs,
      samples: Number(row.samples),
      latencyMs: row.latency.map(Number),
      firstTokenMs: row.first.map(Number),
    }));
  }
}
