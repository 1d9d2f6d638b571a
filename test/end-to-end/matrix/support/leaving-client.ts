import type { TestGateway } from "../../../support/gateway.ts";
import { addressOf, type ClientDialect } from "./client-dialect.ts";
import type { Fields } from "./json-value.ts";
import { routed } from "./matrix-scene.ts";

/** A client that leaves when the test says so. */
export interface LeavingClient {
  /** Resolves once the answer so far contains a text; rejects when the answer ends without it. */
  hasSeen(text: string): Promise<void>;
  /** What came so far. */
  seen(): string;
  /** Closes the connection; gives the `performance.now()` at which it did. */
  leave(): number;
  /** Resolves when the request is over on the client's side. */
  over: Promise<void>;
}

/** Sends a request whose client can be made to leave, to these providers and no others. */
export function startLeavingClient(
  gateway: TestGateway,
  {
    client,
    body,
    providers,
  }: { client: ClientDialect; body: Fields; providers: readonly string[] },
): LeavingClient {
  const controller = new AbortController();
  const watchers = new Set<() => void>();
  let seen = "";
  let ended = false;
  const tell = (): void => {
    for (const watcher of watchers) watcher();
  };
  const read = async (): Promise<void> => {
    const sent = addressOf(client, routed(body, providers));
    const response = await gateway.post(sent.path, sent.body, { signal: controller.signal });
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      seen += decoder.decode(chunk, { stream: true });
      tell();
    }
  };
  const over = read()
    .catch(() => undefined)
    .finally(() => {
      ended = true;
      tell();
    });
  return {
    over,
    seen: () => seen,
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
  };
}
