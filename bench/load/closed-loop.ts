import { cpuTimeMs } from "../process/proc-stat.ts";
import { requestBytes } from "./chat-request.ts";
import type { ClosedLoopJob, LoadResult } from "./job.ts";
import { LatencyHistogram } from "./latency-histogram.ts";
import { LoadConnection, type ConnectionListener, type Exchange } from "./load-connection.ts";

/** How long answers that are due at the end of the window are waited for. */
const drainMs = 3_000;
/** A peer that fails this often is not worth the rest of the window. */
const maxErrors = 200;

/**
 * Sends requests over keep-alive connections for the job's time, warms up, then measures one
 * window: what ends in it counts. Without a rate each connection asks again as soon as it has its
 * answer; latencies then include the wait behind the other connections, so compare them only
 * between peers under the same load.
 */
export async function runClosedLoop(job: ClosedLoopJob): Promise<LoadResult> {
  const run = new ClosedLoopRun(job);
  await run.openConnections();
  return run.measure();
}

class ClosedLoopRun implements ConnectionListener {
  private readonly job: ClosedLoopJob;
  private readonly request: Buffer;
  private readonly connections = new Set<LoadConnection>();
  private readonly idle: LoadConnection[] = [];
  private readonly due: number[] = [];
  private readonly latency = new LatencyHistogram();
  private readonly firstByte = new LatencyHistogram();
  private readonly eventDelay = new LatencyHistogram();
  private phase: "warm-up" | "measuring" | "draining" = "warm-up";
  private sent = 0;
  private inFlight = 0;
  private completed = 0;
  private errors = 0;
  private firstError: string | undefined;
  private events = 0;
  private stop: () => void = () => undefined;

  constructor(job: ClosedLoopJob) {
    this.job = job;
    this.request = requestBytes({ host: `127.0.0.1:${job.target.port}`, ...job.target });
  }

  async openConnections(): Promise<void> {
    for (let index = 0; index < this.job.connections; index += 1)
      this.idle.push(await this.connected());
  }

  async measure(): Promise<LoadResult> {
    const { warmupMs, durationMs, ratePerSecond, maxRequests, watchPids } = this.job;
    const stopped = new Promise<void>((resolve) => void (this.stop = resolve));
    if (maxRequests !== undefined) this.phase = "measuring";
    const ticker = ratePerSecond === undefined ? undefined : this.startSchedule(ratePerSecond);
    if (ticker === undefined)
      for (const connection of this.idle.splice(0)) this.sendNext(connection);
    await Promise.race([stopped, Bun.sleep(warmupMs)]);
    this.phase = "measuring";
    const startedAtMs = performance.now();
    const cpuBeforeMs = cpuTimeMs(watchPids);
    await Promise.race([stopped, Bun.sleep(durationMs)]);
    const cpuAfterMs = cpuTimeMs(watchPids);
    const result = this.result(performance.now() - startedAtMs);
    this.phase = "draining";
    clearInterval(ticker);
    await this.drain();
    const cpuMs =
      cpuBeforeMs === undefined || cpuAfterMs === undefined
        ? {}
        : { cpuMs: cpuAfterMs - cpuBeforeMs };
    return { ...result, ...cpuMs };
  }

  onExchange(connection: LoadConnection, exchange: Exchange): void {
    this.inFlight -= 1;
    if (exchange.status !== 200)
      this.fail(`status ${exchange.status}: ${exchange.errorText.slice(0, 300)}`);
    else if (this.phase === "measuring") this.count(exchange);
    if (this.phase !== "draining") this.next(connection);
    this.stopWhenAllSent();
  }

  onEventDelay(delayMs: number): void {
    if (this.phase === "measuring") this.eventDelay.record(delayMs * 1000);
  }

  onClosed(connection: LoadConnection, reason: { inFlight: boolean; text: string }): void {
    this.connections.delete(connection);
    const idleAt = this.idle.indexOf(connection);
    if (idleAt >= 0) this.idle.splice(idleAt, 1);
    if (reason.inFlight) {
      this.inFlight -= 1;
      this.fail(reason.text);
    }
    this.stopWhenAllSent();
    if (this.phase !== "draining") void this.reconnect();
  }

  private async connected(): Promise<LoadConnection> {
    const connection = new LoadConnection(this.request, this);
    await connection.connect(this.job.target.port);
    this.connections.add(connection);
    return connection;
  }

  private async reconnect(): Promise<void> {
    try {
      const connection = await this.connected();
      if (this.phase !== "draining") this.next(connection);
    } catch (error) {
      this.fail(`cannot connect: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private startSchedule(ratePerSecond: number): ReturnType<typeof setInterval> {
    let nextAtMs = performance.now();
    return setInterval(() => {
      const nowMs = performance.now();
      for (; nextAtMs <= nowMs; nextAtMs += 1000 / ratePerSecond) this.due.push(nowMs);
      while (this.due.length > 0 && this.idle.length > 0) this.next(this.idle.shift());
    }, 1);
  }

  /** Gives a free connection its next request, or lets it wait for one. */
  private next(connection: LoadConnection | undefined): void {
    if (connection === undefined) return;
    if (this.job.ratePerSecond === undefined) return this.sendNext(connection);
    const dueAtMs = this.due.shift();
    if (dueAtMs === undefined) this.idle.push(connection);
    else this.sendNext(connection, dueAtMs);
  }

  private sendNext(connection: LoadConnection, dueAtMs?: number): void {
    if (this.job.maxRequests !== undefined && this.sent >= this.job.maxRequests) return;
    this.sent += 1;
    this.inFlight += 1;
    connection.send(dueAtMs);
  }

  private stopWhenAllSent(): void {
    const { maxRequests } = this.job;
    if (maxRequests !== undefined && this.inFlight === 0 && this.sent >= maxRequests) this.stop();
  }

  private count(exchange: Exchange): void {
    this.completed += 1;
    this.events += exchange.events;
    this.latency.record((exchange.endedAtMs - exchange.startedAtMs) * 1000);
    this.firstByte.record((exchange.firstByteAtMs - exchange.startedAtMs) * 1000);
  }

  private fail(text: string): void {
    this.errors += 1;
    this.firstError ??= text;
    if (this.errors >= maxErrors) this.stop();
  }

  private result(durationMs: number): LoadResult {
    return {
      durationMs,
      completed: this.completed,
      errors: this.errors,
      ...(this.firstError === undefined ? {} : { firstError: this.firstError }),
      latency: this.latency.summary(),
      firstByte: this.firstByte.summary(),
      events: this.events,
      eventDelay: this.eventDelay.summary(),
    };
  }

  private async drain(): Promise<void> {
    const giveUpAtMs = performance.now() + drainMs;
    while (this.inFlight > 0 && performance.now() < giveUpAtMs) await Bun.sleep(5);
    for (const connection of this.connections) connection.close();
  }
}
