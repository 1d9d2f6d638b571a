import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { Answers } from "../../lib/api-types.ts";
import { ApiError, type List, queryOf, request, sending } from "../../lib/api.ts";
import { type RangeSearch, rangeOf } from "../../lib/time.ts";
import type { Generation } from "./latest.ts";

/** Why a request cost what it did, and who served it. */
export type Explanation = Answers["GET /generation/{id}/explain"];

/** What was tried, and what came of it. */
export type GenerationDetails = Explanation["generation"];

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
  batch_id?: string | undefined;
  /** Of lists across workspaces alone. */
  workspace_id?: string | undefined;
}

/** Changes filters of the address; what is undefined is taken away. */
export type Change = (change: Record<string, string | undefined>) => void;

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
export type Histogram = Answers["GET /analytics/generations/histogram"];

export const histogramQuery = (filters: ActivityFilters) =>
  queryOptions({
    queryKey: ["generations", "histogram", filters],
    queryFn: () =>
      request<Histogram>(`/analytics/generations/histogram${queryOf(parametersOf(filters))}`),
  });

/** What went wrong, and what was refused before any provider was asked. */
export type Failures = Answers["GET /analytics/errors"];

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
export type Content = Answers["GET /generation/content"]["data"];

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

/** Blocks a provider for every request of this workspace. */
export async function blockProvider(provider: string): Promise<void> {
  const { blocked_providers: blocked } =
    await request<Answers["GET /security/privacy"]>("/security/privacy");
  await request(
    "/security/privacy",
    sending("PATCH /security/privacy", { blocked_providers: [...new Set([...blocked, provider])] }),
  );
}
