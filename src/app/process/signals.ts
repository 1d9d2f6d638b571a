import { setTimeout as delay } from "node:timers/promises";
import type { HttpServer } from "../../http/http-server.ts";
import { systemClock } from "../../platform/kernel/clock.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { App } from "../app.ts";

/** The variable in which a process finds its place, as JSON. */
export const placeVariable = "SWITCHYARD_PROCESS";

/** The place of a gateway among several processes of one machine. */
export interface ProcessPlace {
  /** The number of the process, counted from 1. */
  number: number;
  /** The port that all share; 0 lets the first process pick one. */
  port: number;
  /**
   * Whether it creates what is shown once: the first key, and the link that claims the owner
   * account.
   */
  announces: boolean;
}

/** A gateway's report once it serves. */
export interface ReadyProcess {
  port: number;
  url: string;
  /** The lines that the terminal shows before the ready line. */
  lines: readonly string[];
}

/** The messages from a gateway to its supervisor. */
export type WordOfProcess =
  | ({ kind: "ready" } & ReadyProcess)
  | { kind: "metrics"; question: number; text: string }
  | { kind: "all-metrics-wanted"; question: number };

/**
 * Milliseconds within which several signals count as one: on Ctrl-C the terminal signals the
 * gateway, and `npm start` passes the signal on once more.
 */
export const sameSignalMs = 200;

/** Milliseconds in which requests that are cut off are answered with an error. */
const lastAnswersMs = 3_000;

/** Milliseconds that requests which were cut off may take to be settled. */
const lastSettlementsMs = 2_000;

/** The parts that a gateway closes when it ends, and how it ends. */
interface EndOptions {
  server: HttpServer;
  logger: Logger;
  /**
   * Milliseconds between announcing the end and closing, in which load balancers notice it, and
   * clients are informed by their next answer.
   */
  drainDelayMs: number;
  /** Milliseconds that requests in progress may take after that. */
  drainGraceMs: number;
}

/**
 * Ends a process that is still starting, with exit code 0, on SIGTERM or SIGINT. Without it, the
 * first process of a container ignores the signal. Returns what takes the listeners away.
 */
export function endWhileStarting(logger: Logger): () => void {
  const onSignal = (): never => {
    logger.info({}, "ended before the gateway was ready");
    process.exit(0);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return () => void process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
}

/**
 * Ends the process with exit code 0: on the first SIGTERM or SIGINT once requests in progress are
 * finished, on the second without waiting.
 */
export function endOnSignal(app: App, options: EndOptions): void {
  const impatience = new AbortController();
  let firstMs: number | undefined;
  const onSignal = (): void => {
    const nowMs = systemClock.monotonicMs();
    if (firstMs !== undefined) {
      if (nowMs - firstMs > sameSignalMs) impatience.abort();
      return;
    }
    firstMs = nowMs;
    drain(app, { ...options, impatience }).then(
      () => process.exit(0),
      (error: unknown) => {
        options.logger.error({ err: error }, "the gateway did not shut down cleanly");
        process.exit(1);
      },
    );
  };
  // Not `once`: a signal without a listener would end the process immediately.
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}

/**
 * Stops accepting, lets requests in progress finish within the grace period or until a second
 * signal, and writes the ledger.
 */
async function drain(
  app: App,
  {
    server,
    logger,
    drainDelayMs,
    drainGraceMs,
    impatience,
  }: EndOptions & { impatience: AbortController },
): Promise<void> {
  const { signal } = impatience;
  app.startDraining();
  server.announceClosing();
  logger.info(
    { pending_requests: server.pendingRequests },
    "draining: every answer closes its connection",
  );
  await delay(drainDelayMs, undefined, { signal }).catch(() => undefined);
  const timer = setTimeout(() => impatience.abort(), drainGraceMs);
  const stopped = server.stop();
  const cut = once(signal, async () => {
    app.breakOffUpstreams();
    await Promise.race([stopped, delay(lastAnswersMs)]);
    await server.stop(true);
  }).then(() => delay(lastSettlementsMs));
  logger.info(
    { pending_requests: server.pendingRequests },
    "draining: no new connections are accepted",
  );
  await stopped;
  // Answers whose clients have left may still be read to their end, and background responses have
  // no connection; both are settled as well.
  await Promise.race([
    Promise.all([app.ledger.untilNoHoldIsOpen(), app.background.untilIdle()]),
    cut,
  ]);
  clearTimeout(timer);
  await app.close();
  logger.info({}, "drained");
}

/** Runs a function when a signal is aborted, or at once where it already is. */
function once(signal: AbortSignal, run: () => unknown): Promise<unknown> {
  return new Promise((resolve) => {
    const onAbort = (): void => resolve(run());
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}

/**
 * Reloads the configuration on SIGHUP, here and at the other gateways on the database. A
 * configuration that cannot be used changes nothing. In a terminal, SIGHUP still means that it was
 * closed, and ends the process.
 */
export function reloadOnSignal(
  app: Pick<App, "nodes">,
  { hasTerminal }: { hasTerminal: boolean },
): void {
  if (hasTerminal) return;
  // The failure has been logged by then.
  process.on("SIGHUP", () => void app.nodes.reload().catch(() => undefined));
}
