import type { Clock } from "../../platform/kernel/clock.ts";
import type { AnswerRequest } from "./answer-request.ts";

/** A running sandbox. */
export interface Sandbox {
  port: number;
  /** `http://127.0.0.1:PORT`, without a path. */
  baseUrl: string;
  /** Stops listening and aborts answers in progress. */
  stop(): Promise<void>;
}

/**
 * Starts the simulated upstream: real HTTP on a free loopback port, in every upstream dialect. Its
 * answers depend only on the request; `clock` is used only for their dates. See `directiveTable`
 * for the delays and faults that a prompt can ask for. Its code is loaded with the first request.
 */
export function startSandbox({ clock }: { clock: Clock }): Sandbox {
  let answering: Promise<AnswerRequest> | undefined;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // Stalled and slow streams are part of the service.
    idleTimeout: 0,
    // A cut is an exception thrown on purpose, which Bun must not print.
    development: false,
    async fetch(request) {
      const answer = await (answering ??= import("./answer-request.ts").then(
        ({ requestAnswerer }) => requestAnswerer(clock),
      ));
      return answer(request);
    },
  });
  const port = server.port ?? 0;
  return { port, baseUrl: `http://127.0.0.1:${port}`, stop: () => server.stop(true) };
}
