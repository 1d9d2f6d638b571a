/** The database thread of the floor: one transaction for all that waits. */
import { Database } from "bun:sqlite";

declare const self: Worker;

/** Id, workspace, key, time, model, cost, input and output tokens of one request, and its detail. */
export type Row = [string, string, string, number, string, number, number, number, string];

const schema = `
  create table generations (id text primary key, workspace text, key text, at_ms integer, model text,
    cost integer, input integer, output integer, detail text) without rowid;
  create index generations_workspace on generations (workspace, at_ms);
  create table transfers (id integer primary key, hold text, debit text, credit text,
    amount integer, at_ms integer);
  create index transfers_hold on transfers (hold);`;

let write: ((rows: Row[]) => void) | undefined;

function open({ file, synchronous }: { file: string; synchronous: string }): void {
  const database = new Database(file, { create: true });
  database.run("pragma journal_mode = WAL");
  database.run(`pragma synchronous = ${synchronous}`);
  database.run(schema);
  const generation = database.prepare("insert into generations values (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const transfer = database.prepare(
    "insert into transfers (hold, debit, credit, amount, at_ms) values (?, ?, 'revenue', ?, ?)",
  );
  write = database.transaction((rows: Row[]) => {
    for (const row of rows) {
      generation.run(...row);
      transfer.run(row[0], row[1], row[5], row[3]);
    }
  });
}

self.onmessage = ({ data }: MessageEvent<string | { file: string; synchronous: string }>) => {
  if (typeof data !== "string") return open(data);
  write?.(JSON.parse(data) as Row[]);
  self.postMessage(0);
};
