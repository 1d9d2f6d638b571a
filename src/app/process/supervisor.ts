import type { Subprocess } from "bun";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../platform/kernel/clock.ts";
import { withinTime } from "../../platform/kernel/time/within-time.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { mergeExpositions } from "../../platform/telemetry/merge-expositions.ts";
import {
  sameSignalMs,
  placeVariable,
  type ProcessPlace,
  type ReadyProcess,
  type WordOfProcess,
} from "./signals.ts";

/** The process to start, and the number of copies. */
export interface SupervisorOptions {
  count: number;
  /** The command that runs one gateway, which finds its place in the environment. */
  command: readonly string[];
  environment: Readonly<Record<string, string | undefined>>;
  /** 0 lets the first process pick one for all. */
  port: number;
  /** Milliseconds that processes may take to end before they are killed. */
  endMs: number;
  logger: Logger;
}

const minPauseMs = 250;
const maxPauseMs = 10_000;

/** Milliseconds after which a process that ends is restarted without a pause. */
const steadyMs = 30_000;

const metricsMs = 2_000;

interface Gateway {
  place: ProcessPlace;
  child: Subprocess;
  startedMs: number;
  ready: Promise<ReadyProcess | undefined>;
  isReady: boolean;
}

/** A failed start, with the exit code of the process, which has logged the reason. */
export class ProcessFailedError extends Error {
  constructor(readonly exitCode: number) {
    super("a gateway process ended before it was ready");
    this.name = "ProcessFailedError";
  }
}

/**
 * Runs several gateways of one machine on one port. The first is started alone, since it migrates
 * the schema and picks the port. A gateway that ends is started again; all are ended together.
 */
export class Supervisor {
  private readonly gateways = new Map<number, Gateway>();
  private readonly waiting = new Map<number, (text: string) => void>();
  private readonly ended = Promise.withResolvers<number>();
  private readonly ending = new AbortController();
  private firstSignalMs: number | undefined;
  private port: number;
  private lastQuestion = 0;

  constructor(private readonly options: SupervisorOptions) {
    this.port = options.port;
  }

  /**
   * Resolves once all processes serve, with undefined where they were ended before that. Rejects
   * with `ProcessFailedError` where one cannot serve.
   */
  async start(): Promise<ReadyProcess | undefined> {
    const first = await this.ready(this.spawn({ number: 1, port: this.port, announces: true }));
    if (first === undefined) return undefined;
    this.port = first.port;
    const numbers = Array.from({ length: this.options.count - 1 }, (_, index) => index + 2);
    const others = await Promise.all(
      numbers.map((number) => this.ready(this.spawn(this.placeOf(number)))),
    );
    if (others.includes(undefined)) return undefined;
    for (const gateway of this.gateways.values()) void this.watch(gateway);
    return first;
  }

  /** Resolves with the exit code once every process has ended after `end`. */
  get exitCode(): Promise<number> {
    return this.ended.promise;
  }

  /** Ends every process as SIGTERM does; a second call ends them without waiting. */
  end(): void {
    const nowMs = systemClock.monotonicMs();
    // On Ctrl-C the terminal signals every process, and this one signals them again.
    if (this.firstSignalMs !== undefined && nowMs - this.firstSignalMs <= sameSignalMs) return;
    const isFirst = this.firstSignalMs === undefined;
    this.firstSignalMs ??= nowMs;
    this.ending.abort();
    for (const { child } of this.gateways.values()) child.kill("SIGTERM");
    if (isFirst) void this.collect();
  }

  /** Makes one gateway reload its configuration; it informs the others. */
  reload(): void {
    const serving = [...this.gateways.values()].find(({ isReady }) => isReady);
    serving?.child.kill("SIGHUP");
  }

  /**
   * Returns the metrics of all processes in one text, each sample labelled with its process's
   * number.
   */
  async metricsText(): Promise<string> {
    const serving = [...this.gateways.values()].filter(({ isReady }) => isReady);
    const texts = await Promise.all(
      serving.map(async (gateway) => ({
        process: String(gateway.place.number),
        text: await withinTime(metricsMs, this.ask(gateway), ""),
      })),
    );
    return mergeExpositions(texts);
  }

  private placeOf(number: number): ProcessPlace {
    return { number, port: this.port, announces: false };
  }

  private spawn(place: ProcessPlace): Gateway {
    const { command, environment } = this.options;
    const ready = Promise.withResolvers<ReadyProcess | undefined>();
    const child = Bun.spawn([...command], {
      env: { ...environment, [placeVariable]: JSON.stringify(place) },
      stdin: "ignore",
      stdout: "inherit",
      stderr: "inherit",
      ipc: (word: WordOfProcess) => this.hear(gateway, word, ready.resolve),
    });
    void child.exited.then(() => {
      gateway.isReady = false;
      ready.resolve(undefined);
    });
    const gateway: Gateway = {
      place,
      child,
      startedMs: systemClock.monotonicMs(),
      ready: ready.promise,
      isReady: false,
    };
    this.gateways.set(place.number, gateway);
    return gateway;
  }

  private hear(
    gateway: Gateway,
    word: WordOfProcess,
    isReady: (facts: ReadyProcess) => void,
  ): void {
    if (word.kind === "ready") {
      gateway.isReady = true;
      isReady(word);
    } else if (word.kind === "metrics") {
      this.waiting.get(word.question)?.(word.text);
      this.waiting.delete(word.question);
    } else {
      // The process that was scraped answers with the metrics of all.
      void this.metricsText().then((text) =>
        this.send(gateway, { kind: "all-metrics", question: word.question, text }),
      );
    }
  }

  private ask(gateway: Gateway): Promise<string> {
    const question = (this.lastQuestion += 1);
    const { promise, resolve } = Promise.withResolvers<string>();
    this.waiting.set(question, resolve);
    this.send(gateway, { kind: "metrics-wanted", question });
    return promise;
  }

  private send({ child, isReady }: Gateway, word: object): void {
    if (isReady && child.exitCode === null) child.send(word);
  }

  private async ready(gateway: Gateway): Promise<ReadyProcess | undefined> {
    const facts = await gateway.ready;
    if (this.ending.signal.aborted) return undefined;
    if (facts !== undefined) return facts;
    const exitCode = await gateway.child.exited;
    for (const { child } of this.gateways.values()) child.kill("SIGTERM");
    await Promise.all([...this.gateways.values()].map(({ child }) => child.exited));
    throw new ProcessFailedError(exitCode === 0 ? 1 : exitCode);
  }

  /** Restarts a gateway whenever it ends, after a pause where it did not live for long. */
  private async watch(first: Gateway): Promise<void> {
    const { logger } = this.options;
    const { signal } = this.ending;
    let pauseMs = 0;
    for (let gateway = first; ; ) {
      const code = await gateway.child.exited;
      if (signal.aborted) return;
      const livedMs = systemClock.monotonicMs() - gateway.startedMs;
      pauseMs = livedMs >= steadyMs ? 0 : Math.min(Math.max(pauseMs * 2, minPauseMs), maxPauseMs);
      logger.error(
        { process: gateway.place.number, exit_code: code, pause_ms: pauseMs },
        "a gateway process ended and is started again",
      );
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      gateway = this.spawn(this.placeOf(gateway.place.number));
    }
  }

  private async collect(): Promise<void> {
    const { endMs, logger } = this.options;
    const timer = setTimeout(() => {
      logger.error({}, "gateway processes that did not end are killed");
      for (const { child } of this.gateways.values()) child.kill("SIGKILL");
    }, endMs);
    const gateways = [...this.gateways.values()];
    await Promise.all(gateways.map(({ child }) => child.exited));
    clearTimeout(timer);
    // The signal itself, or the terminal's, ends a process that had nothing to finish yet.
    const failed = gateways.find(
      ({ child: { exitCode, signalCode } }) =>
        exitCode !== 0 && signalCode !== "SIGTERM" && signalCode !== "SIGINT",
    );
    this.ended.resolve(failed === undefined ? 0 : 1);
  }
}
