import { setTimeout as delay } from "node:timers/promises";
import type { App } from "./app.ts";
import type { HttpServer } from "../http/http-server.ts";
import { systemClock } from "../platform/lib/clock.ts";
import type { Logger } from "../platform/telemetry/logger.ts";

/** How long requests that are under way may take to finish after SIGTERM. */
const drainGraceMs = 30_000;

/** How long clients are told to leave before idle connections are closed under them; busy ones hear it with their next answer. */
const closingNoticeMs = 250;

/** Signals that come together are one: on Ctrl-C the terminal tells the gateway, and `npm start` passes it on once more. */
const sameSignalMs = 200;

/** How long requests that were cut off may take to be settled. */
const lastSettlementsMs = 2_000;

/** Ends the process with 0: on the first SIGTERM or SIGINT once what is under way is finished, on the second without waiting. */
export function endOnSignal(app: App, { server, logger }: { server: HttpServer; logger: Logger }): void {
  const impatience = new AbortController();
  let firstMs: number | undefined;
  const onSignal = (): void => {
    const nowMs = systemClock.monotonicMs();
    if (firstMs !== undefined) {
      if (nowMs - firstMs > sameSignalMs) impatience.abort();
      return;
    }
    firstMs = nowMs;
    drain(app, { server, logger, impatience }).then(() => process.exit(0), (error: unknown) => {
      logger.error({ err: error }, "the end was not in good order");
      process.exit(1);
    });
  };
  // Not `once`: while a signal has no listener, it ends the process where it stands.
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}

/**
 * Stops accepting, lets what is under way finish within the grace period or until somebody is impatient,
 * and writes the ledger.
 */
async function drain(
  app: App,
  { server, logger, impatience }: { server: HttpServer; logger: Logger; impatience: AbortController },
): Promise<void> {
  const { signal } = impatience;
  app.startDraining();
  server.announceClosing();
  logger.info({ pending_requests: server.pendingRequests }, "draining: every answer closes its connection");
  await delay(closingNoticeMs, undefined, { signal }).catch(() => undefined);
  const timer = setTimeout(() => impatience.abort(), drainGraceMs);
  const cut = once(signal, async () => {
    await server.stop(true);
    app.breakOffUpstreams();
  }).then(() => delay(lastSettlementsMs));
  const stopped = server.stop();
  logger.info({ pending_requests: server.pendingRequests }, "draining: no new connections are accepted");
  await stopped;
  // Answers whose clients have left may still be read to their end, and background responses are nobody's; they are settled as well.
  await Promise.race([Promise.all([app.ledger.untilNoHoldIsOpen(), app.background.untilIdle()]), cut]);
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
