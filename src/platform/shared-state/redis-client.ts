import { rootCertificates } from "node:tls";
import type { Redis, RedisOptions } from "ioredis";
import { SharedStateAwayError, SharedStateUnfitError } from "./shared-state-error.ts";

/** A script that the server runs atomically. */
export interface SharedScript {
  /** The unique name of the script, and of the client command that runs it. */
  name: string;
  lua: string;
}

/** The address of the server and the means to authenticate it. */
export interface SharedServer {
  /** The server's URL. With sentinels, its host is the name under which they know the primary. */
  url: string;
  /** The URLs of sentinels, all with one scheme and login; absent or empty where there are none. */
  sentinels?: readonly string[] | undefined;
  /** The certificates to trust in addition to the platform's, in PEM. */
  certificates?: readonly string[] | undefined;
}

/** How long a command may take before the server counts as unavailable, in milliseconds. */
export const commandTimeoutMs = 1_000;

const connectTimeoutMs = 2_000;
const minBackoffMs = 50;
const maxBackoffMs = 1_000;

/** Refusals of the user, of the password, or of a right that the user lacks. */
export const refusedLogin = /(^|because )(NOAUTH|WRONGPASS|NOPERM)\b/;

/**
 * Refusals that say nothing about the command and that end with their cause: the server is loading
 * its data, is no longer a primary, has too few replicas, is out of memory, cannot write its data to
 * disk (`MISCONF`), or has run another client's script for seconds (`BUSY`).
 */
export const passingRefusal =
  /^(LOADING|READONLY|NOREPLICAS|MASTERDOWN|TRYAGAIN|OOM|MISCONF|BUSY|ANOTHERRUN)\b/;

/**
 * Creates a client that never waits for an unavailable server: commands fail at once, and the
 * client reconnects automatically. Commands do not wait for each other's answers.
 * `enableAutoPipelining` stays off: in ioredis 6.0.0 scripts that share a pipeline lose answers,
 * and the errors thrown then reach no caller. The first client loads the library.
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

/** Returns TLS options that trust the given certificates in addition to the platform's. */
const trusted = ({ certificates = [] }: SharedServer): Pick<RedisOptions, "tls"> =>
  certificates.length === 0 ? {} : { tls: { ca: [...rootCertificates, ...certificates] } };

const sentinelPort = 26_379;

/** Returns how to ask sentinels for the primary; no options where there are no sentinels. */
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

/** Returns whether a server refused a command for a reason that passes without intervention. */
export const isPassingRefusal = (error: Error): boolean =>
  error.name === "ReplyError" && passingRefusal.test(error.message);

/** Returns the server's run from the answer to `INFO server`. */
export function runIdIn(info: string): string {
  const run = /^run_id:(\w+)/m.exec(info)?.[1];
  if (run === undefined) throw new Error("the server of shared state does not tell its run_id");
  return run;
}

/** Returns the `master_replid` in the text of `INFO replication`: new with each promotion. */
export function replicationIdIn(info: string): string {
  const id = /^master_replid:(\w+)/m.exec(info)?.[1];
  if (id === undefined)
    throw new Error("the server of shared state does not tell its master_replid");
  return id;
}

/**
 * Throws `SharedStateUnfitError` where `INFO memory` shows that the server evicts keys. Without
 * evicted holds and counts, requests would spend the same credits or room in a window twice.
 */
export function requireNoEviction(info: string, place: string): void {
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
  if (policy === undefined || policy === "noeviction") return;
  throw new SharedStateUnfitError(
    `the Valkey or Redis at ${place} evicts keys (maxmemory-policy ${policy}), and holds and rate windows are among them: ` +
      "set maxmemory-policy to noeviction",
  );
}

/** The hash of no script, with which a server that runs scripts by their hash answers `NOSCRIPT`. */
const unknownScript = "0".repeat(40);

/**
 * Throws `SharedStateUnfitError` where the server, or a proxy before it, runs no scripts: the user's
 * rights exclude EVALSHA or EVAL, or the proxy does not know them. Every request would fail.
 */
export async function requireScripts(
  client: Pick<Redis, "eval" | "evalsha">,
  place: string,
): Promise<void> {
  const tries = [
    ["EVALSHA", () => client.evalsha(unknownScript, 0)],
    ["EVAL", () => client.eval("return 1", 0)],
  ] as const;
  for (const [command, send] of tries) {
    try {
      await send();
    } catch (error) {
      const { name, message } = error as Error;
      if (name !== "ReplyError") throw error;
      if (/^NOSCRIPT\b/.test(message) || passingRefusal.test(message)) continue;
      throw scriptsRefused({ place, command, message });
    }
  }
}

/** Returns the error of a server that refuses to run scripts, by a command and with a message. */
export const scriptsRefused = ({
  place,
  command,
  message,
}: {
  place: string;
  command: string;
  message: string;
}): SharedStateUnfitError =>
  new SharedStateUnfitError(
    `the Valkey or Redis at ${place} does not run ${command} (${message}): give its user the rights +@scripting, ` +
      "and connect without a proxy that does not pass scripts on",
  );

/**
 * Returns the error that a failed command means: an error of the gateway for a refusal, and
 * `SharedStateAwayError` for anything else.
 */
export function redisFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (error.name === "ReplyError" && !isPassingRefusal(error)) return error;
  return new SharedStateAwayError("the server of shared state is away", { cause: error });
}
