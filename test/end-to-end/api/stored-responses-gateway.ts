import { ResponseStore } from "../../../src/inference/responses/response-store.ts";
import type { RunBackground } from "../../../src/inference/responses/job-store.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { seedStorage } from "./seed-storage.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

const secret = (name: string): string => `sk-svc-v1-${name}${"0123456789abcdef".repeat(2)}`;

/** Keys of two workspaces; the first one has two. */
export const keys = {
  own: secret("own"),
  colleague: secret("colleague"),
  stranger: secret("stranger"),
};

/** A gateway over two workspaces, and the store that its responses are in. */
export interface StoredResponsesGateway {
  gateway: TestGateway;
  responses: ResponseStore;
  /** Asks as the holder of a key. */
  ask(method: string, path: string, key?: string): Promise<Response>;
  stop(): Promise<void>;
}

/** Starts a gateway whose background responses are worked on by `runBackground`. */
export async function startStoredResponses(
  runBackground: RunBackground,
): Promise<StoredResponsesGateway> {
  const seeded = await seedStorage({
    workspaces: [{ id: "ws_a" }, { id: "ws_b" }],
    llmKeys: [
      { secret: keys.own, workspaceId: "ws_a", id: "key_a" },
      { secret: keys.colleague, workspaceId: "ws_a" },
      { secret: keys.stranger, workspaceId: "ws_b" },
    ],
  });
  const bootstrap = {
    llmKey: undefined,
    managementKey: undefined,
    creditsNanoUsd: undefined,
    plan: "enterprise",
  } as const;
  const gateway = await startGateway({ ...seeded.settings, bootstrap }, { runBackground });
  const { storage } = gateway.app;
  return {
    gateway,
    responses: new ResponseStore({
      database: withTables(storage.database),
      commits: storage.commits,
    }),
    ask: (method, path, key = keys.own) =>
      fetch(gateway.baseUrl + path, { method, headers: { authorization: `Bearer ${key}` } }),
    async stop() {
      await gateway.stop();
      seeded.remove();
    },
  };
}
