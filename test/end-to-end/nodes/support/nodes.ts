import { type HostedGateway, hostGateway } from "../../../support/hosted-gateway.ts";
import { migratedDatabase } from "../../../support/postgres.ts";
import {
  endProcesses,
  runProcess,
  startProcess,
  type EndedProcess,
  type GatewayProcess,
} from "../../../support/process.ts";
import { startRedis, type RedisServer } from "../../../support/redis.ts";
import {
  startFaultUpstream,
  type FaultUpstream,
} from "../../../support/upstream/fault-upstream.ts";
import { acmeYaml } from "../../process/support/acme-yaml.ts";
import { bootstrapVariables } from "../../process/support/bootstrap-variables.ts";
import { queryDatabase } from "../../process/support/query-database.ts";

/** Two gateways as processes of their own, on one Postgres and one Valkey or Redis. */
export interface Nodes {
  gateways: readonly [GatewayProcess, GatewayProcess];
  upstream: FaultUpstream;
  redis: RedisServer;
  databaseUrl: string;
  query(text: string): Promise<Record<string, unknown>[]>;
  /** Starts one more, by a command other than that of the sources where one is named. */
  start(command?: readonly string[]): Promise<GatewayProcess>;
  /** Starts one more with other variables. */
  startWith(variables: Readonly<Record<string, string>>): Promise<GatewayProcess>;
  /** Runs one more, or a program, with other variables, which is expected to end by itself. */
  runWith(
    variables: Readonly<Record<string, string>>,
    command?: readonly string[],
  ): Promise<EndedProcess>;
  /** Runs a program with the settings of the gateways, which is expected to end by itself. */
  run(command: readonly string[]): Promise<EndedProcess>;
  /** Ends the upstream and the server; `endProcesses` ends the gateways. */
  stop(): Promise<void>;
}

/** Two gateways in the tests' own process; what is started beside them has one of its own. */
export interface HostedNodes extends Omit<Nodes, "gateways"> {
  gateways: readonly [HostedGateway, HostedGateway];
}

/** What nodes begin with. */
interface NodesOptions {
  /** Goes on where the provider ends. */
  yaml?: string;
  /** Of the first workspace, in USD. */
  credits?: string;
  /** Puts something between the gateways and their shared server. */
  redisUrlFor?(url: string): Promise<string>;
}

/** Starts both at once on an empty database, so that each may be the first. */
export async function startNodes(options: NodesOptions = {}): Promise<Nodes> {
  const { start, ...parts } = await prepareNodes(options);
  return { ...parts, start, gateways: await Promise.all([start(), start()]) };
}

/**
 * Starts both as `startNodes` does, in the tests' own process: for tests that neither end nor suspend
 * either of them.
 */
export async function hostNodes(options: NodesOptions = {}): Promise<HostedNodes> {
  const { host, stop, ...parts } = await prepareNodes(options);
  const gateways = await Promise.all([host(), host()]);
  return {
    ...parts,
    gateways,
    async stop() {
      await Promise.all(gateways.map((gateway) => gateway.stop()));
      await stop();
      // Their folders are removed after them, and what was started beside them ends.
      await endProcesses();
    },
  };
}

async function prepareNodes({
  yaml = "",
  credits = "10",
  redisUrlFor = async (url) => url,
}: NodesOptions): Promise<Omit<Nodes, "gateways"> & { host(): Promise<HostedGateway> }> {
  const [upstream, redis, databaseUrl] = await Promise.all([
    startFaultUpstream(),
    startRedis(),
    migratedDatabase(),
  ]);
  const options = {
    yaml: acmeYaml(upstream.baseUrl, yaml),
    environment: {
      ...bootstrapVariables,
      SWITCHYARD_BOOTSTRAP_CREDITS: credits,
      DATABASE_URL: databaseUrl,
      REDIS_URL: await redisUrlFor(redis.url),
      SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
    },
  };
  const start = (command?: readonly string[]): Promise<GatewayProcess> =>
    startProcess({ ...options, ...(command !== undefined && { command }) });
  const withVariables = (variables: Readonly<Record<string, string>>) => ({
    ...options,
    environment: { ...options.environment, ...variables },
  });
  return {
    host: () => hostGateway(options),
    upstream,
    redis,
    databaseUrl,
    start,
    startWith: (variables) => startProcess(withVariables(variables)),
    runWith: (variables, command) =>
      runProcess({ ...withVariables(variables), ...(command !== undefined && { command }) }),
    run: (command) => runProcess({ ...options, command }),
    query: (text) => queryDatabase(databaseUrl, text),
    async stop() {
      upstream.stop();
      await redis.kill();
    },
  };
}
