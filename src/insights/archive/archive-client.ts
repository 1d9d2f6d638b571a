import { rootCertificates } from "node:tls";
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { GatewayError } from "../../platform/kernel/errors.ts";

/** What a question to the archive binds: texts, numbers, and lists of texts. */
export type ArchiveParameters = Record<string, string | number | readonly string[]>;

const requestTimeoutMs = 30_000;
const probeTimeoutMs = 2_000;
const connectionsMax = 8;

/** Exact 64-bit numbers come as texts; an insert is one block, so that it is taken whole or not. */
const settings = {
  output_format_json_quote_64bit_integers: 1,
  date_time_input_format: "basic",
} as const;
const insertSettings = {
  async_insert: 0,
  input_format_parallel_parsing: 0,
  insert_deduplicate: 1,
} as const;
/** A record and its repetition have the same month, so months are merged apart. */
const querySettings = {
  ...settings,
  do_not_merge_across_partitions_select_final: 1,
  prefer_column_name_to_alias: 1,
} as const;

/** Where an archive is, and with which credentials it is asked. */
export interface ArchiveTarget {
  /** `http(s)://host:port`, without credentials. */
  address: string;
  username: string;
  password: string;
  database: string;
}

/** Takes `clickhouse+http(s)://user:password@host:port/database` apart, as the settings have it. */
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

/** An archive, which answers later, or not at all for now; requests are served all the same. */
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

/** Speaks to ClickHouse over HTTP. Errors never hold the credentials. */
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
      // A socket of a server that is gone would be waited on until the request times out.
      keep_alive: { enabled: false },
      compression: { request: true, response: false },
      // What fails is reported where it is asked for.
      log: { level: ClickHouseLogLevel.OFF },
      ...(certificates.length === 0
        ? {}
        : { tls: { ca_cert: Buffer.from([...rootCertificates, ...certificates].join("\n")) } }),
    });
  }

  /** Whether the archive answers a question within two seconds. */
  async isUp(): Promise<boolean> {
    return this.version().then(
      () => true,
      () => false,
    );
  }

  /** The version of the server; rejects with what keeps its database from being used. */
  async version(): Promise<string> {
    const result = await this.client.query({
      query: "select version() as version",
      format: "JSONEachRow",
      abort_signal: AbortSignal.timeout(probeTimeoutMs),
    });
    const [row] = await result.json<{ version: string }>();
    return row?.version ?? "";
  }

  /** Runs a statement that answers nothing. */
  async command(query: string, parameters: ArchiveParameters = {}): Promise<void> {
    await this.client.command({ query, query_params: parameters });
  }

  /** Inserts rows; of several inserts with one token, the archive takes the first. */
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

  /** Rows of a question; rejects with `ArchiveUnavailableError`. */
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

  /** Lets go of the connections. */
  close(): Promise<void> {
    return this.client.close();
  }
}
