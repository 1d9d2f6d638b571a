import { type CompiledQuery, type QueryCompiler, SqliteQueryCompiler } from "kysely";
import { type SumTables, marked } from "../sum-reads.ts";

/** Compiles queries for SQLite, and marks those that read sums. */
export class SqliteSumsCompiler extends SqliteQueryCompiler {
  readonly #tables: SumTables;

  constructor(tables: SumTables) {
    super();
    this.#tables = tables;
  }

  override compileQuery(...query: Parameters<QueryCompiler["compileQuery"]>): CompiledQuery {
    return marked(super.compileQuery(...query), this.#tables);
  }
}
