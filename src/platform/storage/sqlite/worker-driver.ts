import { CompiledQuery, type DatabaseConnection, type Driver } from "kysely";
import { assert } from "../../lib/assert.ts";
import { WorkerConnection, type WorkerConnectionOptions } from "./worker-connection.ts";

/** Hands out connections; each is a view on the same two threads. */
export class WorkerDriver implements Driver {
  readonly #options: WorkerConnectionOptions;

  constructor(options: WorkerConnectionOptions) {
    this.#options = options;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return new WorkerConnection(this.#options);
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await ours(connection).begin();
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await ours(connection).commit();
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await ours(connection).rollback();
  }

  savepoint(connection: DatabaseConnection, name: string): Promise<void> {
    return runNamed(connection, "SAVEPOINT", name);
  }

  rollbackToSavepoint(connection: DatabaseConnection, name: string): Promise<void> {
    return runNamed(connection, "ROLLBACK TO", name);
  }

  releaseSavepoint(connection: DatabaseConnection, name: string): Promise<void> {
    return runNamed(connection, "RELEASE", name);
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    ours(connection).release();
  }

  /** The threads belong to whoever opened the storage. */
  async destroy(): Promise<void> {}
}

function ours(connection: DatabaseConnection): WorkerConnection {
  assert(connection instanceof WorkerConnection, "the connection is of another driver");
  return connection;
}

async function runNamed(
  connection: DatabaseConnection,
  command: string,
  name: string,
): Promise<void> {
  await connection.executeQuery(CompiledQuery.raw(`${command} "${name.replaceAll('"', '""')}"`));
}
