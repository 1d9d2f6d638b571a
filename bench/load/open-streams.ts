import { requestBytes } from "./chat-request.ts";
import type { OpenStreamsJob, StreamsResult } from "./job.ts";
import { LoadConnection, type ConnectionListener } from "./load-connection.ts";

/** Streams that are being opened at once; more would overflow a peer's accept queue. */
const batchSize = 100;

/** Event streams held open until `close`. */
export interface HeldStreams {
  result: StreamsResult;
  close(): void;
}

/**
 * Opens so many streams and resolves when each has its first event, has failed, or the time is
 * over.
 */
export async function openStreams(job: OpenStreamsJob): Promise<HeldStreams> {
  const request = requestBytes({ host: `127.0.0.1:${job.target.port}`, ...job.target });
  const giveUpAtMs = performance.now() + job.timeoutMs;
  const connections: LoadConnection[] = [];
  const result: StreamsResult = { open: 0, errors: 0 };
  const fail = (text: string): void => {
    result.errors += 1;
    result.firstError ??= text;
  };
  while (connections.length < job.connections && performance.now() < giveUpAtMs) {
    const batch = Array.from(
      { length: Math.min(batchSize, job.connections - connections.length) },
      () =>
        openStream({
          request,
          port: job.target.port,
          fail,
          waitMs: giveUpAtMs - performance.now(),
        }),
    );
    for (const connection of await Promise.all(batch)) {
      if (connection !== undefined) result.open += 1;
      connections.push(connection ?? closedConnection(request));
    }
  }
  return { result, close: () => connections.forEach((connection) => connection.close()) };
}

interface Opening {
  request: Buffer;
  port: number;
  fail: (text: string) => void;
  waitMs: number;
}

/** Resolves with a connection whose first event has come, or with nothing. */
async function openStream({
  request,
  port,
  fail,
  waitMs,
}: Opening): Promise<LoadConnection | undefined> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const failed = (text: string): void => {
    fail(text);
    resolve(false);
  };
  const listener: ConnectionListener = {
    onFirstByte: () => resolve(true),
    onExchange: (_, exchange) =>
      failed(`the stream ended with status ${exchange.status}: ${exchange.errorText}`),
    onClosed: (_, reason) => failed(reason.text),
    onEventDelay: () => undefined,
  };
  const connection = new LoadConnection(request, listener);
  const timer = setTimeout(() => failed("no event came in time"), waitMs);
  try {
    await connection.connect(port);
    connection.send();
    return (await promise) ? connection : undefined;
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

const closedConnection = (request: Buffer): LoadConnection =>
  new LoadConnection(request, {
    onExchange: () => undefined,
    onClosed: () => undefined,
    onEventDelay: () => undefined,
  });
