import {
  type CompiledQuery,
  PostgresDialect,
  type PostgresDialectConfig,
  PostgresQueryCompiler,
  type QueryCompiler,
} from "kysely";
import { type SumTables, marked } from "../sum-reads.ts";

class PostgresSumsCompiler extends PostgresQueryCompiler {
  readonly #tables: SumTables;

  constructor(tables: SumTables) {
    super();
    this.#tables = tables;
  }

  override compileQuery(...query: Parameters<QueryCompiler["compileQuery"]>): CompiledQuery {
    return marked(super.compileQuery(...query), this.#tables);
  }
}

/** The Postgres dialect, with a compiler that marks queries of sums. */
export class PostgresSumsDialect extends PostgresDialect {
  readonly #tables: SumTables;

  constructor(config: PostgresDialectConfig, tables: SumTables) {
    super(config);
    this.#tables = tables;
  }

  override createQueryCompiler(): QueryCompiler {
    return new PostgresSumsCompiler(this.#tables);
  }
}
