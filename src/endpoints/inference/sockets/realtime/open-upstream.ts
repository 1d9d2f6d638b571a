import type { InferenceDependencies } from "../../../../inference/pipeline/execution.ts";
import type { Candidate } from "../../../../inference/routing/candidate.ts";
import {
  realtimeTarget,
  type SessionWork,
} from "../../../../inference/surfaces/realtime/realtime-target.ts";
import type { RealtimeTurn } from "../../../../inference/surfaces/realtime/realtime-turn.ts";
import type { RealtimeUpstream } from "../../../../inference/surfaces/realtime/realtime-upstream.ts";
import { UpstreamSocket } from "../../../../inference/upstream/upstream-socket.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";

/**
 * Opens a session at the first provider of a planned turn that accepts one. Throws `bad_gateway`,
 * with the hold freed, where none does.
 */
export async function openUpstream(
  { upstream }: Pick<InferenceDependencies, "upstream">,
  { turn, work }: { turn: RealtimeTurn; work: SessionWork },
): Promise<{ candidate: Candidate; upstream: RealtimeUpstream }> {
  let problem = "no provider can be called";
  for (const planned of turn.execution.candidates) {
    const candidate = turn.serveBy(planned);
    const target = candidate && realtimeTarget(candidate.route, work);
    if (candidate === undefined || target === undefined) continue;
    const { provider } = candidate.route;
    try {
      const socket = await UpstreamSocket.open({
        url: target.url,
        headers: target.headers,
        connectTimeoutMs: provider.timeouts.connectMs * 2,
        route: upstream.routeTo(target.url, provider.proxy),
      });
      return { candidate, upstream: target.adapt(socket) };
    } catch (error) {
      problem = `${provider.name}: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  turn.free();
  throw new GatewayError("bad_gateway", `No provider opened a session (${problem}).`);
}
