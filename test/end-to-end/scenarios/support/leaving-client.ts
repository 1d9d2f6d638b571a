import type { TestGateway } from "../../../support/gateway.ts";
import { parseEvents } from "./chat-reply.ts";

/** A client that leaves when the test says so. */
export interface LeavingClient {
  /** Resolves once the answer so far contains a text; rejects when the answer ends without it. */
  hasSeen(text: string): Promise<void>;
  /** Closes the connection; gives the `performance.now()` at which it did. */
  leave(): number;
  /** Resolves when the request is over on the client's side. */
  over: Promise<void>;
  /** Events that were received whole. */
  events(): readonly unknown[];
}

/** Sends a chat request whose client can be made to leave. */
export function startLeavingClient(gateway: TestGateway, body: unknown): LeavingClient {
  const controller = new AbortController();
  const watchers = new Set<() => void>();
  let seen = "";
  let ended = false;
  const read = async (): Promise<void> => {
    const response = await gateway.post("/chat/completions", body, { signal: controller.signal });
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      seen += decoder.decode(chunk, { stream: true });
      for (const watcher of watchers) watcher();
    }
  };
  const over = read()
    .catch(() => undefined)
    .finally(() => {
      ended = true;
      for (const watcher of watchers) watcher();
    });
  return {
    over,
    hasSeen(text) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const check = (): void => {
        if (seen.includes(text)) resolve();
        else if (ended) reject(new Error(`the answer ended without ${text}: ${seen}`));
      };
      watchers.add(check);
      check();
      return promise;
    },
    leave() {
      controller.abort();
      return performance.now();
    },
    events: () => parseEvents(seen).events,
  };
}
