import type { SharedServer } from "./redis-client.ts";
import { SharedCluster } from "./shared-cluster.ts";
import { SharedStateClusterError } from "./shared-state-error.ts";
import {
  type SharedParts,
  SharedState,
  type SharedStateLogger,
  waitMsDefault,
} from "./shared-state.ts";

/**
 * Connects to the server at a URL, or to all servers of the cluster that it belongs to. Throws
 * `SharedStateAwayError` where none answers in time, and `SharedStateUnfitError` where a server's
 * settings make it unusable.
 */
export async function openSharedState({
  waitMs = waitMsDefault,
  ...options
}: SharedServer & {
  logger: SharedStateLogger;
  waitMs?: number | undefined;
}): Promise<SharedParts> {
  try {
    return await SharedState.open({ ...options, waitMs });
  } catch (error) {
    if (!(error instanceof SharedStateClusterError)) throw error;
    return SharedCluster.open({ ...options, waitMs });
  }
}
