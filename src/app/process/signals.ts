import { setTimeout as delay } from "node:timers/promises";
import type { HttpServer } from "../../http/http-server.ts";
import { systemClock } from "../../platform/kernel/clock.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { App } from "../app.ts";

/**
 * Signals that come together are one: on Ctrl-C the terminal tells the gateway, and `npm start`
 * passes it on once more.
 */
export const sameSignalMs = 200;

/** How long requests that were cut off may take to be settled. */
const lastSettlementsMs = 2_000;

/** How a gateway ends, and with what. */
export interface EndOptions {
  server: HttpServer;
  logger: Logger;
  /**
   * Between saying that it ends and closing: load balancers learn of it, and clients with their
   * next answer.
   */
  drainDelayMs: number;
  /** How long requests that are under way may take after that. */
  drainGraceMs: number;
}

/**
 * Ends the process with 0: on the first SIGTERM or SIGINT once what is under way is finished, on
 * the second without waiting.
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
        options.logger.error({ err: error }, "the end was not in good order");
        process.exit(1);
      },
    );
  };
  // Not `once`: while a signal has no listener, it ends the process where it stands.
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}

/**
 * Stops accepting, lets what is under way finish within the grace period or until a second signal
 * comes, and writes the ledger.
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
  const cut = once(signal, async () => {
    await server.stop(true);
    app.breakOffUpstreams();
  }).then(() => delay(lastSettlementsMs));
  const stopped = server.stop();
  logger.info(
    { pending_requests: server.pendingRequests },
    "draining: no new connections are accepted",
  );
  await stopped;
  // Answers whose clients have left may still be read to their end, and background responses have
  // no connection at all; both are settled as well.
  await Promise.race([
    Promise.all([app.ledger.untilNoHoldIsOpen(), app.background.untilIdle()]),
    cut,
  ]);
  clearTimeout(timer);
  await app.close();
  logger.info({}, "drained");
}

/** Runs something when a signal is aborted, at once where it already is. */
function once(signal: AbortSignal, run: () => unknown): Promise<unknown> {
  return new Promise((resolve) => {
    const onAbort = (): void => resolve(run());
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}

/**
 * Reads the configuration again on SIGHUP, here and at the other gateways on the database; one that
 * cannot be used changes nothing. Where there is a terminal, SIGHUP goes on to mean that it is gone,
 * and ends the process.
 */
export function reloadOnSignal(
  app: Pick<App, "nodes">,
  { hasTerminal }: { hasTerminal: boolean },
): void {
  if (hasTerminal) return;
  // What went wrong is in the log by then.
  process.on("SIGHUP", () => void app.nodes.reload().catch(() => undefined));
}
