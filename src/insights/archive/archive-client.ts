import { rootCertificates } from "node:tls";
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { GatewayError } from "../../platform/kernel/errors.ts";

/** The parameters of an archive query: texts, numbers, and lists of texts. */
export type ArchiveParameters = Record<string, string | number | readonly string[]>;

const requestTimeoutMs = 30_000;
const probeTimeoutMs = 2_000;
const connectionsMax = 8;

/**
 * Settings of every statement. Exact 64-bit numbers come as texts, and an insert is one block,
 * which is taken whole or not at all.
 */
const settings = {
  output_format_json_quote_64bit_integers: 1,
  date_time_input_format: "basic",
} as const;
const insertSettings = {
  async_insert: 0,
  input_format_parallel_parsing: 0,
  insert_deduplicate: 1,
} as const;
/**
 * Settings of queries. A record and its duplicate have the same month, so months are merged
 * separately.
 */
const querySettings = {
  ...settings,
  do_not_merge_across_partitions_select_final: 1,
  prefer_column_name_to_alias: 1,
} as const;

/** The address of an archive, and its credentials. */
export interface ArchiveTarget {
  /** `http(s)://host:port`, without credentials. */
  address: string;
  username: string;
  password: string;
  database: string;
}

/** Parses `clickhouse+http(s)://user:password@host:port/database`, as the settings have it. */
function archiveTargetOf(url: string): ArchiveTarget {
  const { protocol, hostname, port, username, password, pathname } = new URL(
    url.replace(/^clickhouse\+/, ""),
  );
  const isPlain = protocol === "http:";
  return {
    address: `${protocol}//${hostname}:${port || (isPlain ? 8123 : 8443)}`,
    username: decodeURIComponent(username) || "default",
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)) || "default",
  };
}

/** Thrown where an archive does not answer at present. Requests are served all the same. */
export class ArchiveUnavailableError extends GatewayError {
  constructor(cause: unknown) {
    super(
      "service_unavailable",
      "The archive that has these records does not answer. Ask again later, or for newer records.",
      { cause, retryAfterSeconds: 10 },
    );
    this.name = "ArchiveUnavailableError";
  }
}

/** Speaks to ClickHouse over HTTP. Its errors never contain the credentials. */
export class ArchiveClient {
  readonly target: ArchiveTarget;
  private readonly client: ClickHouseClient;

  constructor({ url, certificates }: { url: string; certificates: readonly string[] }) {
    this.target = archiveTargetOf(url);
    const { address, ...credentials } = this.target;
    this.client = createClient({
      url: address,
      ...credentials,
      application: "switchyard",
      request_timeout: requestTimeoutMs,
      max_open_connections: connectionsMax,
      // A reused socket to a server that is gone would stall until the request times out.
      keep_alive: { enabled: false },
      compression: { request: true, response: false },
      // Failures are reported where the query is made.
      log: { level: ClickHouseLogLevel.OFF },
      ...(certificates.length === 0
        ? {}
        : { tls: { ca_cert: Buffer.from([...rootCertificates, ...certificates].join("\n")) } }),
    });
  }

  /** Returns whether the archive answers a query within two seconds. */
  async isUp(): Promise<boolean> {
    return this.version().then(
      () => true,
      () => false,
    );
  }

  /** Returns the version of the server. Rejects with the reason why its database cannot be used. */
  async version(): Promise<string> {
    const result = await this.client.query({
      query: "select version() as version",
      format: "JSONEachRow",
      abort_signal: AbortSignal.timeout(probeTimeoutMs),
    });
    const [row] = await result.json<{ version: string }>();
    return row?.version ?? "";
  }

  /** Runs a statement without a result. */
  async command(query: string, parameters: ArchiveParameters = {}): Promise<void> {
    await this.client.command({ query, query_params: parameters });
  }

  /** Inserts rows. Of several inserts with one token, the archive takes the first. */
  async insert(
    table: string,
    { rows, token }: { rows: readonly object[]; token: string },
  ): Promise<void> {
    await this.client.insert({
      table,
      values: rows,
      format: "JSONEachRow",
      clickhouse_settings: { ...insertSettings, insert_deduplication_token: token },
    });
  }

  /** Returns the rows of a query. Rejects with `ArchiveUnavailableError`. */
  async query<Row>(query: string, parameters: ArchiveParameters): Promise<Row[]> {
    try {
      const result = await this.client.query({
        query,
        query_params: parameters,
        format: "JSONEachRow",
        clickhouse_settings: querySettings,
      });
      return await result.json<Row>();
    } catch (error) {
      throw new ArchiveUnavailableError(error);
    }
  }

  /** Closes the connections. */
  close(): Promise<void> {
    return this.client.close();
  }
}
