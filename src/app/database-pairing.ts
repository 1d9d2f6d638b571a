import { type Kysely, sql } from "kysely";
import { randomBase62 } from "../platform/kernel/ids.ts";
import {
  type DatabaseFacts,
  type PairedWith,
  type PairingFacts,
  pairingKey,
  type StateFact,
} from "../platform/shared-state/paired-parts.ts";
import type { SharedPart } from "../platform/shared-state/shared-state.ts";
import { databaseMs, type GatewayTables } from "../platform/storage/database-epoch.ts";
import { StorageUnavailableError } from "../platform/storage/storage-error.ts";
import type { Storage } from "../platform/storage/storage.ts";

/** How long a gateway counts as alive without a beat, in milliseconds. */
const aliveMs = 8_000;
/** The fact that identifies the database. */
const databaseName = "database";
/** The beginning of the facts that name the shared state; the prefix of a part follows. */
const stateName = "shared_state ";
const nowText = "(extract(epoch from clock_timestamp()) * 1000)::bigint";
/** The beginning of the ids under which replicas have beats. */
const replicaId = "replica-";

/** Reads and writes what a database says about the shared state of its gateways. */
export class DatabasePairing implements PairingFacts {
  private readonly storage: Pick<Storage<never>, "alone">;
  private readonly database: Kysely<GatewayTables>;
  /** Whether the server reports which server and which database it is. */
  private readsServer: boolean | undefined;

  constructor(options: {
    storage: Pick<Storage<never>, "alone">;
    database: Kysely<GatewayTables>;
  }) {
    this.storage = options.storage;
    this.database = options.database;
  }

  async read(): Promise<DatabaseFacts> {
    const server = await this.server();
    const facts = await this.database
      .selectFrom("gateway_facts")
      .selectAll()
      .where((where) =>
        where.or([where("name", "=", databaseName), where("name", "like", `${stateName}%`)]),
      )
      .execute();
    const id = facts.find(({ name }) => name === databaseName)?.value ?? (await this.identify());
    const states = facts
      .filter(({ name }) => name.startsWith(stateName))
      .map(
        ({ name, value }) =>
          [name.slice(stateName.length), JSON.parse(value) as StateFact] as const,
      );
    return {
      identity: server === undefined ? id : `${id}.${server}`,
      states: new Map(states),
    };
  }

  async beats(): Promise<Map<string, number>> {
    const beats = await this.database
      .selectFrom("gateway_beats")
      .select(["node_id", "beat"])
      .where("at_ms", ">", sql<number>`${databaseMs} - ${aliveMs}`)
      .where("node_id", "not like", `${replicaId}%`)
      .execute();
    return new Map(beats.map(({ node_id, beat }) => [node_id, beat]));
  }

  async write(prefix: string, fact: StateFact): Promise<void> {
    const value = JSON.stringify(fact);
    await this.database
      .insertInto("gateway_facts")
      .values({ name: stateName + prefix, value })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
      .execute();
  }

  alone<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.storage.alone(work);
  }

  /** Gives the database an identity, unless another gateway has just done so, and returns it. */
  private async identify(): Promise<string> {
    await this.database
      .insertInto("gateway_facts")
      .values({ name: databaseName, value: randomBase62(12) })
      .onConflict((conflict) => conflict.column("name").doNothing())
      .execute();
    const { value } = await this.database
      .selectFrom("gateway_facts")
      .select("value")
      .where("name", "=", databaseName)
      .executeTakeFirstOrThrow();
    return value;
  }

  /**
   * Returns an id of the server and of the database in it, by which a copy of the database differs
   * from its original; undefined where the server does not report it, as some hosted ones do not.
   */
  private async server(): Promise<string | undefined> {
    if (this.readsServer === false) return undefined;
    const reading = this.readServer();
    if (this.readsServer === true) return reading;
    const server = await reading.catch((error: unknown) => {
      if (error instanceof StorageUnavailableError) throw error;
      return undefined;
    });
    this.readsServer = server !== undefined;
    return server;
  }

  private async readServer(): Promise<string | undefined> {
    const { rows } = await sql<{ server: string }>`
      select to_hex(system_identifier) || '.' || (select oid from pg_database where datname = current_database()) as server
      from pg_control_system()`.execute(this.database);
    return rows[0]?.server;
  }
}

/**
 * Returns how parts of the shared state and a database differ, without changing either; undefined
 * where each names the other, or none has been used yet.
 */
export async function pairingDifference(
  parts: readonly Pick<SharedPart, "prefix" | "get">[],
  {
    query,
    places,
  }: {
    query(text: string): Promise<readonly Record<string, unknown>[]>;
    places: { shared: string; database: string };
  },
): Promise<string | undefined> {
  const rows = await query("select name, value from gateway_facts");
  const facts = new Map(rows.map(({ name, value }) => [String(name), String(value)]));
  const id = facts.get(databaseName);
  for (const part of parts) {
    const text = await part.get(pairingKey);
    const fact = facts.get(stateName + part.prefix);
    if (fact === undefined) continue;
    const { state, place } = JSON.parse(fact) as StateFact;
    if (text === null) {
      const [alive] = await query(
        `select 1 from gateway_beats where at_ms > ${nowText} - ${aliveMs}`,
      );
      if (alive === undefined) continue;
      return (
        `gateways run on the database ${places.database}, which names the Valkey or Redis at ${place}; ` +
        `the one at ${places.shared} names no database`
      );
    }
    const paired = JSON.parse(text) as PairedWith;
    if (paired.database.split(".")[0] !== id)
      return `the Valkey or Redis at ${places.shared} belongs to the database ${paired.name}, not to ${places.database}`;
    if (paired.state !== state)
      return `the database ${places.database} names the Valkey or Redis at ${place}, which is not the one at ${places.shared}`;
  }
  return undefined;
}
