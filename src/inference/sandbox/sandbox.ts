import type { Clock } from "../../platform/kernel/clock.ts";
import type { AnswerRequest } from "./answer-request.ts";
import type { VoiceSession } from "./wire/voice.ts";

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
  const server = Bun.serve<VoiceSession>({
    hostname: "127.0.0.1",
    port: 0,
    // Stalled and slow streams are part of the service.
    idleTimeout: 0,
    // A cut is an exception thrown on purpose, which Bun must not print.
    development: false,
    async fetch(request, self) {
      const model = new URL(request.url).searchParams.get("model");
      if (model !== null && request.headers.has("upgrade")) {
        const { newVoiceSession } = await import("./wire/voice.ts");
        if (self.upgrade(request, { data: newVoiceSession(model) })) return undefined;
      }
      const answer = await (answering ??= import("./answer-request.ts").then(
        ({ requestAnswerer }) => requestAnswerer(clock),
      ));
      return answer(request);
    },
    websocket: {
      open: (socket) => void import("./wire/voice.ts").then((voice) => voice.voiceOpened(socket)),
      message: (socket, text) =>
        void import("./wire/voice.ts").then((voice) => voice.voiceReceived(socket, String(text))),
    },
  });
  const port = server.port ?? 0;
  return { port, baseUrl: `http://127.0.0.1:${port}`, stop: () => server.stop(true) };
}
