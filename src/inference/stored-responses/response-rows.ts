import type { Generated } from "kysely";
import type { CommitUnit, InsertStatement } from "../../platform/storage/commit-queue.ts";
import { outputItems, type NewResponse, type ResponseRecord } from "./stored-response.ts";

/** Tables of stored responses. */
export interface ResponseTables {
  stored_responses: {
    id: string;
    workspace_id: string;
    key_id: string;
    created_at_ms: number;
    completed_at_ms: number | null;
    status: string;
    model: string;
    background: number;
    previous_response_id: string | null;
    /** Bytes of the record and the input items together. */
    size_bytes: number;
    record: string;
    input_items: string;
    request: string | null;
    /** How often a background job was begun. */
    runs: Generated<number>;
  };
  stored_response_items: { workspace_id: string; item_id: string; response_id: string };
  stored_response_events: { response_id: string; last_sequence: number; events: string };
}

type ResponseRow = Omit<ResponseTables["stored_responses"], "runs">;
type ItemRow = ResponseTables["stored_response_items"];

const responseColumns = [
  "id",
  "workspace_id",
  "key_id",
  "created_at_ms",
  "completed_at_ms",
  "status",
  "model",
  "background",
  "previous_response_id",
  "size_bytes",
  "record",
  "input_items",
  "request",
] as const satisfies readonly (keyof ResponseRow)[];

const itemColumns = [
  "workspace_id",
  "item_id",
  "response_id",
] as const satisfies readonly (keyof ItemRow)[];

const responseInsert: InsertStatement = {
  name: "stored response",
  table: "stored_responses",
  columns: responseColumns,
};
const itemInsert: InsertStatement = {
  name: "stored response item",
  table: "stored_response_items",
  columns: itemColumns,
};

/** Statements for the storage's commit queue. Responses come before their items, which refer to them. */
export const storedResponseInserts: readonly InsertStatement[] = [responseInsert, itemInsert];

/** Item ids that can be referred to: what databases keep and compare as it is. */
const itemIdPattern = /^[\x21-\x7e]{1,256}$/;

/** Whether an id can be that of an item that was kept. */
export const isItemId = (id: string): boolean => itemIdPattern.test(id);

/** Output items of one response that can be referred to by id; more than that no answer has. */
const itemsMax = 1_000;

/** The row of a response. */
export function responseRow(response: NewResponse): ResponseRow {
  const record = JSON.stringify(response.record);
  const inputItems = JSON.stringify(response.inputItems);
  return {
    id: response.id,
    workspace_id: response.workspaceId,
    key_id: response.keyId,
    created_at_ms: response.createdAtMs,
    completed_at_ms: response.completedAtMs,
    status: String(response.record["status"]),
    model: String(response.record["model"]),
    background: response.background ? 1 : 0,
    previous_response_id: response.previousResponseId,
    size_bytes: Buffer.byteLength(record) + Buffer.byteLength(inputItems),
    record,
    input_items: inputItems,
    request: response.requestText,
  };
}

/** The rows by which the output items of a response are found; an id that comes twice stands once. */
export function itemRows(response: {
  id: string;
  workspaceId: string;
  record: ResponseRecord;
}): ItemRow[] {
  const ids = outputItems(response.record)
    .map(({ id }) => id)
    .filter((id): id is string => typeof id === "string" && isItemId(id));
  return [...new Set(ids)]
    .slice(0, itemsMax)
    .map((id) => ({ workspace_id: response.workspaceId, item_id: id, response_id: response.id }));
}

/** Both kinds of rows as one unit of the commit queue. */
export const responseUnit = (row: ResponseRow, items: readonly ItemRow[]): CommitUnit => ({
  inserts: [
    { statement: responseInsert, values: responseColumns.map((column) => row[column]) },
    ...items.map((item) => ({
      statement: itemInsert,
      values: itemColumns.map((column) => item[column]),
    })),
  ],
  adds: [],
});
