import { rootCertificates } from "node:tls";
import type { Redis, RedisOptions } from "ioredis";
import { SharedStateAwayError, SharedStateUnfitError } from "./shared-state-error.ts";

/** Where the server is, and how it is known. */
export interface SharedServer {
  /** Where sentinels are asked for its address, its host is the name by which they know it. */
  url: string;
  /** URLs of sentinels, all of one scheme and login; absent or empty, none are asked. */
  sentinels?: readonly string[] | undefined;
  /** In PEM, trusted beside the platform's own list. */
  certificates?: readonly string[] | undefined;
}

/** How long a command may take before the server counts as away. */
export const commandTimeoutMs = 1_000;

const connectTimeoutMs = 2_000;
const minBackoffMs = 50;
const maxBackoffMs = 1_000;

/** Refusals of the user or the password, or of a right that the user lacks. */
export const refusedLogin = /(^|because )(NOAUTH|WRONGPASS|NOPERM)\b/;

/**
 * Refusals that pass by themselves: the server loads its data, is no primary any more, or has too
 * few replicas to be one.
 */
export const passingRefusal = /^(LOADING|READONLY|NOREPLICAS|MASTERDOWN|TRYAGAIN|OOM)\b/;

/**
 * A client that never waits for a server that is away: commands fail at once, and it reconnects by
 * itself. Commands do not wait for one another's answers. (ioredis 6.0.0: with
 * `enableAutoPipelining` scripts that share a pipeline lose answers, and what throws then cannot be
 * caught by any caller.) The library is loaded with the first client.
 */
export async function newRedisClient(
  server: SharedServer,
  timeouts: { commandTimeout?: number } = { commandTimeout: commandTimeoutMs },
): Promise<Redis> {
  const { Redis } = await import("ioredis");
  const isSecret = server.url.startsWith("rediss:");
  const retryStrategy = (attempt: number): number =>
    Math.min(minBackoffMs * 2 ** Math.min(attempt, 5), maxBackoffMs);
  return new Redis(server.url, {
    ...(isSecret && trusted(server)),
    ...sentinelOptions(server),
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    ...timeouts,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy,
    sentinelRetryStrategy: retryStrategy,
  });
}

/** TLS with the certificates that are trusted beside the platform's own. */
const trusted = ({ certificates = [] }: SharedServer): Pick<RedisOptions, "tls"> =>
  certificates.length === 0 ? {} : { tls: { ca: [...rootCertificates, ...certificates] } };

const sentinelPort = 26_379;

/** How sentinels are asked for the primary; nothing where there are none. */
function sentinelOptions(server: SharedServer) {
  const urls = (server.sentinels ?? []).map((url) => new URL(url));
  const [first] = urls;
  if (first === undefined) return {};
  const { tls = {} } = trusted(server);
  return {
    name: decodeURIComponent(new URL(server.url).hostname),
    sentinels: urls.map(({ hostname, port }) => ({
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port || sentinelPort),
    })),
    ...(first.username !== "" && { sentinelUsername: decodeURIComponent(first.username) }),
    ...(first.password !== "" && { sentinelPassword: decodeURIComponent(first.password) }),
    ...(first.protocol === "rediss:" && { sentinelTLS: tls }),
    ...(server.url.startsWith("rediss:") && { tls, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: commandTimeoutMs,
  };
}

/** Whether a server refused a command for a reason that passes by itself. */
export const isPassingRefusal = (error: Error): boolean =>
  error.name === "ReplyError" && passingRefusal.test(error.message);

/** The run of a server as `INFO server` tells it. */
export function runIdIn(info: string): string {
  const run = /^run_id:(\w+)/m.exec(info)?.[1];
  if (run === undefined) throw new Error("the server of shared state does not tell its run_id");
  return run;
}

/**
 * Throws `SharedStateUnfitError` where `INFO memory` says that a server evicts: holds and windows
 * would be taken a second time.
 */
export function requireNoEviction(info: string, place: string): void {
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
  if (policy === undefined || policy === "noeviction") return;
  throw new SharedStateUnfitError(
    `the Valkey or Redis at ${place} evicts keys (maxmemory-policy ${policy}), and holds and rate windows are among them: ` +
      "set maxmemory-policy to noeviction",
  );
}

/**
 * What a failed command means: a refusal is a mistake of ours, anything else is a server that is
 * away.
 */
export function redisFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (error.name === "ReplyError" && !isPassingRefusal(error)) return error;
  return new SharedStateAwayError("the server of shared state is away", { cause: error });
}
