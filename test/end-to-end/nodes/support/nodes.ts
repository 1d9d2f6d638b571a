import { migratedDatabase } from "../../../support/postgres.ts";
import {
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

/**
 * Starts both at once on an empty database, so that each may be the first; `yaml` goes on where the
 * provider ends, `redisUrlFor` puts something between the gateways and their shared server.
 */
export async function startNodes({
  yaml = "",
  credits = "10",
  redisUrlFor = async (url: string): Promise<string> => url,
} = {}): Promise<Nodes> {
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
    gateways: await Promise.all([start(), start()]),
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
