import { afterAll, afterEach, beforeEach } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { JobStore } from "../../src/inference/responses/job-store.ts";
import {
  storedResponseInserts,
  ResponseStore,
  type ResponseTables,
} from "../../src/inference/responses/response-store.ts";
import type {
  NewResponse,
  ResponseItem,
  ResponseRecord,
} from "../../src/inference/responses/stored-response.ts";
import { migrations } from "../../src/platform/storage/migrations/index.ts";
import { openStorage } from "../../src/platform/storage/open-storage.ts";
import type { Storage } from "../../src/platform/storage/storage.ts";
import { putMigratedSqlite } from "./migrated-sqlite.ts";
import { migratedDatabase } from "./postgres.ts";

/** Stores of responses over one open database. */
export interface OpenedStores {
  responses: ResponseStore;
  jobs: JobStore;
  storage: Storage<ResponseTables>;
}

/** The stores of one engine; `current` works from `beforeEach` on. */
export interface StoresOfEngine {
  current(): OpenedStores;
  /** Opens the same database again, as the next process would. */
  reopen(): Promise<OpenedStores>;
}

async function open(url: string): Promise<OpenedStores> {
  const storage = await openStorage<ResponseTables>({
    url,
    durability: "process",
    migrations,
    commitStatements: { inserts: storedResponseInserts, adds: [] },
  });
  return { storage, responses: new ResponseStore(storage), jobs: new JobStore(storage.database) };
}

/** What refers to rows of another table comes before it. */
const storedTables = ["stored_response_events", "stored_response_items", "stored_responses"];

/** The engines that responses are stored on, for `describe.each`. */
export const engines = [["SQLite"], ["Postgres"]] as const satisfies readonly [Engine][];

type Engine = "SQLite" | "Postgres";

/**
 * Opens stores without rows for each test of a group. Closing them ends the work of the test before,
 * so that on Postgres one database can serve all of them.
 */
export function storesOn(engine: Engine): StoresOfEngine {
  const root = mkdtempSync(join(tmpdir(), "switchyard-responses-"));
  let shared: string | undefined;
  let url: string;
  let stores: OpenedStores;
  beforeEach(async () => {
    if (engine === "SQLite") {
      url = await putMigratedSqlite(mkdtempSync(join(root, "test-")));
      stores = await open(url);
      return;
    }
    url = shared ??= await migratedDatabase();
    stores = await open(url);
    for (const table of storedTables)
      await sql`delete from ${sql.table(table)}`.execute(stores.storage.database);
  }, 60_000);
  afterEach(() => stores.storage.close());
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  return {
    current: () => stores,
    async reopen() {
      await stores.storage.close();
      return (stores = await open(url));
    },
  };
}

/** Returns a response id that contains a number readably, and sorts by it. */
export const responseId = (number: number): string =>
  `resp_${number.toString(16).padStart(32, "0")}`;

/** Returns a message of the assistant as an output item. */
export const answer = (id: string, text: string): ResponseItem => ({
  type: "message",
  id,
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }],
});

/** Returns a message of the user as an input item, as most clients write it. */
export const question = (text: string): ResponseItem => ({ role: "user", content: text });

/** Returns a record that the endpoints can show. */
export const recordOf = (id: string, changes: ResponseRecord = {}): ResponseRecord => ({
  id,
  object: "response",
  created_at: 1,
  completed_at: 2,
  model: "acme/large",
  status: "completed",
  output: [answer(`msg_${id}`, "Hello")],
  usage: null,
  error: null,
  incomplete_details: null,
  ...changes,
});

/** Returns a response that has been answered, unless the changes say otherwise. */
export function newResponse(
  id: string,
  { record, ...changes }: Partial<NewResponse> = {},
): NewResponse {
  return {
    id,
    workspaceId: "ws_a",
    keyId: "key_a",
    createdAtMs: 1_000,
    completedAtMs: 2_000,
    background: false,
    previousResponseId: null,
    inputItems: [question("Hi")],
    requestText: null,
    ...changes,
    record: recordOf(id, record),
  };
}

/** Returns a background response that waits for its run. */
export const queuedJob = (id: string, changes: Partial<NewResponse> = {}): NewResponse =>
  newResponse(id, {
    background: true,
    completedAtMs: null,
    requestText: "{}",
    ...changes,
    record: { status: "queued", output: [], completed_at: null, ...changes.record },
  });
