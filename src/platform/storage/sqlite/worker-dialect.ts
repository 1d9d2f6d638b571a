import {
  type DatabaseIntrospector,
  type Dialect,
  type DialectAdapter,
  type Driver,
  type Kysely,
  type QueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import type { WorkerConnectionOptions } from "./worker-connection.ts";
import { WorkerDriver } from "./worker-driver.ts";

/** Kysely's SQLite dialect over the two database threads. */
export class WorkerDialect implements Dialect {
  readonly #options: WorkerConnectionOptions;

  constructor(options: WorkerConnectionOptions) {
    this.#options = Object.freeze({ ...options });
  }

  createDriver(): Driver {
    return new WorkerDriver(this.#options);
  }

  createQueryCompiler(): QueryCompiler {
    return new SqliteQueryCompiler();
  }

  createAdapter(): DialectAdapter {
    return new WorkerAdapter();
  }

  createIntrospector(database: Kysely<unknown>): DatabaseIntrospector {
    return new SqliteIntrospector(database);
  }
}

/** The driver takes care of whose turn it is, and the engine's DDL is transactional: migrations are all or nothing. */
class WorkerAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }

  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}
