import { freshDatabase } from "../../../support/postgres.ts";
import { startProcess, type GatewayProcess } from "../../../support/process.ts";
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
  /** Starts one more. */
  start(): Promise<GatewayProcess>;
  /** Ends the upstream and the server; `endProcesses` ends the gateways. */
  stop(): Promise<void>;
}

/**
 * Starts both at once on an empty database, so that each may be the first; `yaml` goes on where the
 * provider ends.
 */
export async function startNodes({ yaml = "", credits = "10" } = {}): Promise<Nodes> {
  const [upstream, redis, databaseUrl] = await Promise.all([
    startFaultUpstream(),
    startRedis(),
    freshDatabase(),
  ]);
  const start = (): Promise<GatewayProcess> =>
    startProcess({
      yaml: acmeYaml(upstream.baseUrl, yaml),
      environment: {
        ...bootstrapVariables,
        SWITCHYARD_BOOTSTRAP_CREDITS: credits,
        DATABASE_URL: databaseUrl,
        REDIS_URL: redis.url,
        SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
      },
    });
  return {
    gateways: await Promise.all([start(), start()]),
    upstream,
    redis,
    databaseUrl,
    start,
    query: (text) => queryDatabase(databaseUrl, text),
    async stop() {
      upstream.stop();
      await redis.kill();
    },
  };
}
