import {
  partIndexOf,
  partTags,
  slotOf,
} from "../../../../src/platform/shared-state/cluster-slots.ts";
import { migratedDatabase } from "../../../support/postgres.ts";
import { startProcess, type GatewayProcess } from "../../../support/process.ts";
import { startRedisCluster, type RedisCluster } from "../../../support/redis-cluster.ts";
import {
  startFaultUpstream,
  type FaultUpstream,
} from "../../../support/upstream/fault-upstream.ts";
import { seedStorage } from "../../api/seed-storage.ts";
import { acmeYaml } from "../../process/support/acme-yaml.ts";
import { bootstrapVariables } from "../../process/support/bootstrap-variables.ts";
import { queryDatabase } from "../../process/support/query-database.ts";
import { manage } from "./manage.ts";

/** A workspace whose part of the cluster is at a known primary. */
export interface PlacedWorkspace {
  id: string;
  /** The secret of the workspace's LLM key. */
  secret: string;
  /** The slot of the workspace's part. */
  slot: number;
}

/** Gateways in processes of their own, on one Postgres database and one cluster. */
export interface ClusterNodes {
  gateways: readonly GatewayProcess[];
  cluster: RedisCluster;
  upstream: FaultUpstream;
  /** One workspace at each primary, in the order of the primaries. */
  workspaces: readonly [PlacedWorkspace, PlacedWorkspace, PlacedWorkspace];
  query(text: string): Promise<Record<string, unknown>[]>;
  /** Stops the upstream and the cluster; `endProcesses` stops the gateways. */
  stop(): Promise<void>;
}

/**
 * Starts a cluster and its gateways, with credits for each workspace. `yaml` is appended to the
 * configuration after the provider.
 */
export async function startClusterNodes({
  gateways: gatewayCount = 2,
  replicas = 0,
  settings = {},
  creditsUsd = 10,
  yaml = "plans: { enterprise: { per_minute: 100000, five_hour: 1000000 } }\n",
}: {
  gateways?: number;
  /** The number of replicas of the first primary. */
  replicas?: number;
  /** The settings of every server of the cluster. */
  settings?: Readonly<Record<string, string>>;
  creditsUsd?: number;
  yaml?: string;
} = {}): Promise<ClusterNodes> {
  const [upstream, cluster, databaseUrl] = await Promise.all([
    startFaultUpstream(),
    startRedisCluster({ replicas, settings }),
    migratedDatabase(),
  ]);
  const workspaces = [0, 1, 2].map(placedWorkspace) as unknown as ClusterNodes["workspaces"];
  const { settings: seeded } = await seedStorage(
    {
      workspaces,
      llmKeys: workspaces.map(({ id, secret }) => ({ workspaceId: id, secret })),
    },
    databaseUrl,
  );
  const start = (): Promise<GatewayProcess> =>
    startProcess({
      yaml: acmeYaml(upstream.baseUrl, yaml),
      environment: {
        ...bootstrapVariables,
        SWITCHYARD_BOOTSTRAP_CREDITS: "0",
        DATABASE_URL: databaseUrl,
        REDIS_URL: cluster.url,
        SWITCHYARD_ENCRYPTION_KEY: Buffer.from(seeded.encryptionKey).toString("base64"),
      },
    });
  const gateways = await Promise.all(Array.from({ length: gatewayCount }, start));
  for (const { id } of workspaces)
    await manage(gateways[0]!, "/admin/grants", { body: { amount: creditsUsd, workspace_id: id } });
  return {
    gateways,
    cluster,
    upstream,
    workspaces,
    query: (text) => queryDatabase(databaseUrl, text),
    async stop() {
      upstream.stop();
      await cluster.stop();
    },
  };
}

/** Returns a workspace whose part is in the middle of the slots of one of three primaries. */
function placedWorkspace(primary: number): PlacedWorkspace {
  const tags = partTags();
  const index = Math.floor(((primary + 0.5) * tags.length) / 3);
  for (let number = 0; ; number += 1) {
    const id = `ws_cluster_${number}`;
    if (partIndexOf(id) !== index) continue;
    return { id, secret: `sk-svc-v1-${"0".repeat(40)}${primary}`, slot: slotOf(tags[index]!) };
  }
}
