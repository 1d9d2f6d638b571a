import { join } from "node:path";
import { acmeYaml } from "../end-to-end/process/support/acme-yaml.ts";
import { bootstrapVariables } from "../end-to-end/process/support/bootstrap-variables.ts";
import { queryDatabase } from "../end-to-end/process/support/query-database.ts";
import { startPostgres, type PostgresServer } from "../support/postgres.ts";
import { programPath } from "../support/program.ts";
import { startProcess, temporaryDirectory, type GatewayProcess } from "../support/process.ts";
import { startRedis, type RedisServer } from "../support/redis.ts";
import { seededRandom } from "../end-to-end/process/support/seeded-random.ts";
import { startFaultUpstream, type FaultUpstream } from "../support/upstream/fault-upstream.ts";
import { SlowLink } from "./slow-link.ts";

/** How the gateway is run. */
export const topologies = ["embedded", "one node", "three nodes"] as const;
export type Topology = (typeof topologies)[number];

/** Connections of gateways that a scenario may make long and lossy. */
export type LinkName = "Postgres" | "Valkey" | "the provider";

/** What scenarios break. */
export interface ChaosParts {
  upstream: FaultUpstream;
  /** Of several gateways, or of one that shares its state. */
  shared?: { redis: RedisServer; databaseUrl: string };
  /** Where the database can be reached by someone else: a URL, or the file of SQLite. */
  place: string;
  query(text: string): Promise<Record<string, unknown>[]>;
  /** Gateways that clients ask; a scenario may replace one. */
  gateways: GatewayProcess[];
  /** The link that the scenario has asked for. */
  link?: SlowLink;
  /** Starts one more, or on SQLite the successor. */
  start(): Promise<GatewayProcess>;
  stop(): Promise<void>;
}

/** What a scenario asks of its parts. */
export interface PartsWanted {
  topology: Topology;
  link?: LinkName;
  /** By how many minutes the clock of each gateway is ahead. */
  minutesAhead?: readonly number[];
}

const seed = 7;
/** So that no rate window answers in the place of what is broken. */
const noWindow = "plans: { enterprise: { per_minute: 1000000 } }";

/** Starts everything on an empty database. */
export async function startParts(wanted: PartsWanted): Promise<ChaosParts> {
  const upstream = await startFaultUpstream();
  return wanted.topology === "embedded"
    ? startEmbedded(upstream, wanted)
    : startNodes(upstream, wanted);
}

async function startEmbedded(upstream: FaultUpstream, wanted: PartsWanted): Promise<ChaosParts> {
  const dataDirectory = temporaryDirectory();
  const place = join(dataDirectory, "switchyard.db");
  const link = wanted.link === undefined ? undefined : await linkTo(upstream.baseUrl);
  const start = (): Promise<GatewayProcess> =>
    startProcess({
      yaml: acmeYaml(link?.url ?? upstream.baseUrl, noWindow),
      dataDirectory,
      environment: { ...bootstrapVariables, SWITCHYARD_BOOTSTRAP_CREDITS: "1000" },
    });
  return {
    upstream,
    place,
    query: (text) => queryDatabase(place, text),
    gateways: [await start()],
    ...(link !== undefined && { link: link.link }),
    start,
    async stop() {
      link?.link.close();
      upstream.stop();
    },
  };
}

let postgres: Promise<PostgresServer> | undefined;

async function startNodes(upstream: FaultUpstream, wanted: PartsWanted): Promise<ChaosParts> {
  postgres ??= startPostgres();
  const [redis, databaseUrl] = await Promise.all([
    startRedis(),
    postgres.then((server) => server.freshDatabase()),
  ]);
  const urls = { Postgres: databaseUrl, Valkey: redis.url, "the provider": upstream.baseUrl };
  const link = wanted.link === undefined ? undefined : await linkTo(urls[wanted.link]);
  if (wanted.link !== undefined && link !== undefined) urls[wanted.link] = link.url;
  const start = (minutesAhead = 0): Promise<GatewayProcess> =>
    startProcess({
      yaml: acmeYaml(urls["the provider"], noWindow),
      environment: {
        ...bootstrapVariables,
        SWITCHYARD_BOOTSTRAP_CREDITS: "1000",
        DATABASE_URL: urls.Postgres,
        REDIS_URL: urls.Valkey,
        SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
        TEST_CLOCK_AHEAD_MS: String(minutesAhead * 60_000),
      },
      ...(minutesAhead !== 0 && {
        command: [
          process.execPath,
          "--preload",
          join(import.meta.dir, "..", "support", "shifted-clock.ts"),
          programPath("main"),
        ],
      }),
    });
  const count = wanted.topology === "three nodes" ? 3 : 1;
  const gateways = await Promise.all(
    Array.from({ length: count }, (_, index) => start(wanted.minutesAhead?.[index])),
  );
  return {
    upstream,
    shared: { redis, databaseUrl },
    place: databaseUrl,
    query: (text) => queryDatabase(databaseUrl, text),
    gateways,
    ...(link !== undefined && { link: link.link }),
    start,
    async stop() {
      link?.link.close();
      upstream.stop();
      await redis.kill();
    },
  };
}

/** A link to where a URL points, and the URL of its near end. */
async function linkTo(url: string): Promise<{ link: SlowLink; url: string }> {
  const target = new URL(url);
  const link = new SlowLink(
    { host: target.hostname, port: Number(target.port) },
    seededRandom(seed),
  );
  target.port = String(await link.listen());
  return { link, url: target.href };
}
