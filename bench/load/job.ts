import { z } from "zod";

/** Where requests go and what they carry. */
const targetSchema = z.object({
  port: z.number(),
  path: z.string(),
  headers: z.record(z.string(), z.string()),
  model: z.string(),
  stream: z.boolean(),
  bodyBytes: z.number(),
});

const closedLoopJobSchema = z.object({
  kind: z.literal("closed-loop"),
  target: targetSchema,
  connections: z.number(),
  warmupMs: z.number(),
  durationMs: z.number(),
  /**
   * Requests a second over all connections; absent, each connection sends as soon as it has its
   * answer.
   */
  ratePerSecond: z.number().optional(),
  /** Stops after so many requests, before the time is over. */
  maxRequests: z.number().optional(),
  /** Processes whose CPU time is read at both ends of the measured window. */
  watchPids: z.array(z.number()),
});

const openStreamsJobSchema = z.object({
  kind: z.literal("open-streams"),
  target: targetSchema,
  connections: z.number(),
  timeoutMs: z.number(),
});

/** What the load generator can be asked for, one JSON object a line. */
export const jobSchema = z.discriminatedUnion("kind", [
  closedLoopJobSchema,
  openStreamsJobSchema,
  z.object({ kind: z.literal("close-streams") }),
]);

const latencySchema = z.object({
  count: z.number(),
  meanUs: z.number(),
  p50Us: z.number(),
  p90Us: z.number(),
  p99Us: z.number(),
  maxUs: z.number(),
});

/** Figures of one measured window. */
export const loadResultSchema = z.object({
  /** Length of the window as it really was. */
  durationMs: z.number(),
  /** Answers with status 200 that ended in the window. */
  completed: z.number(),
  /** Other answers, and connections that broke. */
  errors: z.number(),
  /** The first of them, in words. */
  firstError: z.string().optional(),
  latency: latencySchema,
  /** From sending the request to the first byte of the body. */
  firstByte: latencySchema,
  /** `data:` lines received. */
  events: z.number(),
  /**
   * From the upstream's sending of an event to its arrival here; only where events carry their
   * time.
   */
  eventDelay: latencySchema,
  /** CPU time that the watched processes used in the window; absent where it cannot be read. */
  cpuMs: z.number().optional(),
});

/** How many streams stand open with their first event received. */
export const streamsResultSchema = z.object({
  open: z.number(),
  errors: z.number(),
  firstError: z.string().optional(),
});

export type LoadTarget = z.infer<typeof targetSchema>;
export type ClosedLoopJob = z.infer<typeof closedLoopJobSchema>;
export type OpenStreamsJob = z.infer<typeof openStreamsJobSchema>;
export type LoadJob = z.infer<typeof jobSchema>;
export type LoadResult = z.infer<typeof loadResultSchema>;
export type StreamsResult = z.infer<typeof streamsResultSchema>;
