import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { ApiError, type List, queryOf, request, sending } from "../../lib/api.ts";
import { type RangeSearch, rangeOf } from "../../lib/time.ts";
import type { Generation } from "./latest.ts";

/** Why a request cost what it did, and who served it. */
export interface Explanation {
  id: string;
  explanation: readonly string[];
  lines: readonly { part: string; quantity: number; usd_per_million: number; amount_usd: number }[];
  charged_usd: number;
  sources: { monthly_usd: number; topup_usd: number; uncollected_usd: number };
  generation: GenerationDetails;
}

/** One provider that was asked. */
interface Attempt {
  provider: string;
  model: string;
  outcome: string;
  status?: number | null;
  reason?: string | null;
  duration_ms: number;
}

/** What was tried, and what came of it. */
export interface GenerationDetails
  extends Omit<Generation, "attempts" | "key_id" | "key_name" | "fallback" | "tokens_cached"> {
  /** `completions` for chat, Messages and Responses. */
  api_type: string | null;
  /** The kind of inference, such as `chat` or `realtime`. */
  surface: string;
  /** Requests of one session belong together, such as the responses of a realtime session. */
  session_id: string | null;
  attempts: readonly Attempt[];
  routing: { order: readonly string[]; left_out: readonly string[] } | null;
  translation_loss: readonly { field: string; reason: string }[];
  usage_estimated: boolean;
  usage_clamped: boolean;
  output_cap: number | null;
  price: { version: string | null } | null;
  hold: { reserved_usd: number };
  trace_id: string;
}

/** What the log is narrowed to: as the address has it, and as the API takes it. */
export interface ActivityFilters extends RangeSearch {
  model?: string | undefined;
  provider?: string | undefined;
  status?: string | undefined;
  key_id?: string | undefined;
  error?: string | undefined;
  app?: string | undefined;
  session_id?: string | undefined;
  preset_id?: string | undefined;
  /** Of lists across workspaces alone. */
  workspace_id?: string | undefined;
}

/**
 * The query of a list, for a range that begins in the past and has no end, so that newer requests
 * belong to it.
 */
export function parametersOf({
  range,
  from,
  to,
  ...filters
}: ActivityFilters): Record<string, string | undefined> {
  if (range === undefined && from === undefined) return filters;
  const { fromMs, toMs } = rangeOf({ range, from, to }, "24h");
  return {
    ...filters,
    from: new Date(fromMs).toISOString(),
    ...(to === undefined ? {} : { to: new Date(toMs).toISOString() }),
  };
}

export const generationsQuery = (filters: ActivityFilters) =>
  infiniteQueryOptions({
    queryKey: ["generations", filters],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      request<List<Generation>>(
        `/analytics/generations${queryOf({ ...parametersOf(filters), limit: 50, after: pageParam })}`,
        { signal },
      ),
    getNextPageParam: (page) => (page.has_more ? (page.next_cursor ?? undefined) : undefined),
  });

const newerMax = 100;
const newerEveryMs = 30_000;

/**
 * Requests that have come since one: counted while the page is looked at, and shown when they are
 * asked for.
 */
export const newerQuery = (filters: ActivityFilters, newest: string | undefined) =>
  queryOptions({
    queryKey: ["generations", "newer", filters, newest],
    queryFn: () =>
      request<List<Generation>>(
        `/analytics/generations${queryOf({
          ...parametersOf(filters),
          from: new Date(Date.parse(newest ?? "") + 1).toISOString(),
          limit: newerMax,
        })}`,
      ),
    enabled: newest !== undefined && filters.to === undefined,
    staleTime: 0,
    refetchInterval: newerEveryMs,
    refetchOnWindowFocus: true,
    select: ({ data, has_more: hasMore }) => ({
      count: data.length,
      text: `${hasMore ? `${newerMax} or more` : data.length} newer ${data.length === 1 ? "request" : "requests"}`,
    }),
  });

/** The path of the table of everything that the filters let through. */
export const csvPath = (filters: ActivityFilters): string =>
  `/analytics/generations${queryOf({ ...parametersOf(filters), format: "csv" })}`;

/** What requests add up to, over time. */
export interface Histogram {
  bucket_seconds: number;
  from: string;
  to: string;
  data: readonly { bucket: string; requests: number; errors: number; cost: number }[];
  totals: { requests: number; errors: number; tokens: number; cost: number };
  complete: boolean;
  counted_from: string | null;
}

export const histogramQuery = (filters: ActivityFilters) =>
  queryOptions({
    queryKey: ["generations", "histogram", filters],
    queryFn: () =>
      request<Histogram>(`/analytics/generations/histogram${queryOf(parametersOf(filters))}`),
  });

/** What went wrong, and what was refused before any provider was asked. */
export interface Failures {
  data: readonly {
    status: string;
    code: string | null;
    http_status: number | null;
    provider: string | null;
    model: string;
    requests: number;
    last_at: string;
  }[];
  refused: readonly {
    code: string;
    http_status: number;
    key_id: string;
    key_name: string | null;
    requests: number;
  }[];
}

export const failuresQuery = (filters: ActivityFilters) =>
  queryOptions({
    queryKey: ["generations", "failures", filters],
    queryFn: () => request<Failures>(`/analytics/errors${queryOf(parametersOf(filters))}`),
  });

const responsesMax = 100;
const sessionMsMax = 3_600_000;

/** The responses of the realtime session that a request belongs to, oldest first. */
export const sessionQuery = (sessionId: string, createdAt: string) =>
  queryOptions({
    queryKey: ["generations", "session", sessionId],
    queryFn: () =>
      request<List<Generation>>(
        `/analytics/generations${queryOf({
          session_id: sessionId,
          from: new Date(Date.parse(createdAt) - sessionMsMax).toISOString(),
          limit: responsesMax,
        })}`,
      ),
    select: ({ data }) => data.toReversed(),
  });

/** The explanation of a request, from the path that has it. */
export const explanationAt = (path: string) =>
  queryOptions({ queryKey: ["explanation", path], queryFn: () => request<Explanation>(path) });
export const explanationQuery = (id: string) =>
  explanationAt(`/generation/${encodeURIComponent(id)}/explain`);

/** What a request asked and was answered, as far as it is kept. */
export interface Content {
  /** The body of the request, or `prompt` with the beginning of its text. */
  input: Readonly<Record<string, unknown>>;
  output: { completion: string | null; reasoning: string | null; raw: string };
  input_cut: boolean;
  output_cut: boolean;
}

/** The prompt and the answer of a request; null where none is kept. */
export const contentQuery = (id: string) =>
  queryOptions({
    queryKey: ["content", id],
    // Is gone from memory soon after it was looked at.
    gcTime: 60_000,
    async queryFn(): Promise<Content | null> {
      try {
        const path = `/generation/content${queryOf({ id })}`;
        return (await request<{ data: Content }>(path)).data;
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }
    },
  });

interface Privacy {
  blocked_providers: readonly string[];
}

/** Blocks a provider for every request of this workspace. */
export async function blockProvider(provider: string): Promise<void> {
  const { blocked_providers: blocked } = await request<Privacy>("/security/privacy");
  await request(
    "/security/privacy",
    sending("PATCH /security/privacy", { blocked_providers: [...new Set([...blocked, provider])] }),
  );
}
