import type { AppTools } from "../../../src/app/app.ts";
import type { AppSettings } from "../../../src/app/settings-of.ts";
import { startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { migratedDatabase } from "../../support/postgres.ts";
import { isNightly } from "../../support/nightly.ts";
import { bootstrapWith } from "./bootstrap-with.ts";
import { seedStorage } from "./seed-storage.ts";

type Engine = readonly [name: string, freshUrl: () => Promise<string | undefined>];

/** Storage engines, each with a way to an empty database of its own. For what differs by engine. */
export const allEngines: readonly Engine[] = [
  ["SQLite", async () => undefined],
  ["Postgres", migratedDatabase],
];

/**
 * The engines of tests of what is above the storage: SQLite, and every engine with
 * `npm test -- --engines=all`, which runs nightly.
 */
export const engines: readonly Engine[] = isNightly ? allEngines : allEngines.slice(0, 1);

/** Secret of the management key of the second workspace, with all scopes. */
export const strangersKey = "ak_live_of_the_other_workspace_0123456789abcdef";

/** A request with some credential; the body is JSON. */
export type Ask = (method: string, path: string, body?: unknown) => Promise<Response>;

/**
 * Two workspaces on one gateway: the test's own keys are in the first, a stranger's in the second.
 */
export interface TwoWorkspaces {
  gateway(): TestGateway;
  /** Asks with a secret. */
  as(secret: string): Ask;
  /** Asks with the management key of the first workspace. */
  own: Ask;
  /** Asks with the management key of the second one. */
  stranger: Ask;
  /** Ends the gateway and starts another one on the same database. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts them on a storage engine. */
export async function startTwoWorkspaces(
  freshUrl: () => Promise<string | undefined>,
  changes: Partial<AppSettings> = {},
  tools: Partial<AppTools> = {},
): Promise<TwoWorkspaces> {
  const storage = await seedStorage(
    {
      workspaces: [{ id: "ws_own" }, { id: "ws_strange" }],
      managementKeys: [{ secret: strangersKey, workspaceId: "ws_strange" }],
    },
    await freshUrl(),
  );
  const start = (): Promise<TestGateway> =>
    startGateway({ ...storage.settings, bootstrap: bootstrapWith({}), ...changes }, tools);
  let gateway = await start();
  const as =
    (secret: string): Ask =>
    (method, path, body) =>
      fetch(gateway.baseUrl + path, {
        method,
        headers: { authorization: `Bearer ${secret}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
  return {
    gateway: () => gateway,
    as,
    own: as(testManagementKey),
    stranger: as(strangersKey),
    async restart() {
      await gateway.stop();
      gateway = await start();
    },
    async stop() {
      await gateway.stop();
      storage.remove();
    },
  };
}
