import type { Redis } from "ioredis";
import { SharedStateAwayError } from "./shared-state-error.ts";

/** How long a command may take before the server counts as away. */
const commandTimeoutMs = 1_000;
const connectTimeoutMs = 2_000;
const minBackoffMs = 50;
const maxBackoffMs = 1_000;

/** Refusals that pass by themselves: the server loads its data, or is no primary any more. */
const passingRefusal = /^(LOADING|READONLY|MASTERDOWN|TRYAGAIN|OOM)\b/;

/**
 * A client that never waits for a server that is away: commands fail at once, and it reconnects by itself. Commands do
 * not wait for one another's answers. (ioredis 6.0.0: with `enableAutoPipelining` scripts that share a pipeline lose
 * answers, and what throws then is nobody's to catch.) The library is loaded with the first client.
 */
export async function newRedisClient(url: string): Promise<Redis> {
  const { Redis } = await import("ioredis");
  return new Redis(url, {
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    commandTimeout: commandTimeoutMs,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(minBackoffMs * 2 ** Math.min(attempt, 5), maxBackoffMs),
  });
}

/** What a failed command means: a refusal is a mistake of ours, anything else is a server that is away. */
export function redisFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (error.name === "ReplyError" && !passingRefusal.test(error.message)) return error;
  return new SharedStateAwayError("the server of shared state is away", { cause: error });
}
