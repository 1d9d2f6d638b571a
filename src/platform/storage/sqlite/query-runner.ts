import type { Database, SQLQueryBindings, Statement } from "bun:sqlite";
import type { QueryRows } from "./worker-protocol.ts";

const maxCachedStatements = 256;

/** Runs compiled queries on one connection, and keeps the most recently used statements. */
export class QueryRunner {
  readonly #database: Database;
  readonly #statements = new Map<string, Statement>();

  constructor(database: Database) {
    this.#database = database;
  }

  run(sql: string, parameters: readonly unknown[]): QueryRows {
    const statement = this.#statement(sql);
    const bindings = parameters as SQLQueryBindings[];
    if (statement.columnNames.length > 0) {
      const rows = statement.values(...bindings) as unknown[][];
      return { columns: statement.columnNames, rows: rows.map(exactNumbers) };
    }
    const { changes, lastInsertRowid } = statement.run(...bindings);
    return { columns: [], rows: [], changes, lastInsertRowid };
  }

  /** Releases the statements, which would keep the connection open. */
  close(): void {
    for (const statement of this.#statements.values()) statement.finalize();
    this.#statements.clear();
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known) {
      this.#statements.delete(sql);
      this.#statements.set(sql, known);
      return known;
    }
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    this.#evictOldest();
    return statement;
  }

  #evictOldest(): void {
    if (this.#statements.size <= maxCachedStatements) return;
    const [oldest] = this.#statements;
    if (!oldest) return;
    this.#statements.delete(oldest[0]);
    oldest[1].finalize();
  }
}

/** Converts integers within 2^53 to numbers; larger ones stay bigint, so that no digit is lost. */
function exactNumbers(row: unknown[]): unknown[] {
  for (let column = 0; column < row.length; column++) {
    const value = row[column];
    if (typeof value !== "bigint") continue;
    const number = Number(value);
    if (Number.isSafeInteger(number)) row[column] = number;
  }
  return row;
}
