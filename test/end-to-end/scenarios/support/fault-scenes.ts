import {
  forgetFailuresOf,
  provider,
  startGateway,
  type TestGateway,
} from "../../../support/gateway.ts";
import type { Fault } from "../../../support/upstream/fault.ts";
import {
  startFaultUpstream,
  refusingBaseUrl,
  type FaultUpstream,
} from "../../../support/upstream/fault-upstream.ts";
import { backupProvider, chatRequest, haltingTimeouts, hastyTimeouts } from "./scene.ts";
import { readReply, type ChatReply } from "./chat-reply.ts";

/**
 * A gateway on which every fault can be met: with an upstream that may take its time, one that may
 * not, and none at all.
 */
export interface FaultScenes {
  gateway: TestGateway;
  acme: FaultUpstream;
  backup: FaultUpstream;
  /** Sends a request to the provider under the fault, then to the backup if there is one. */
  meet(
    fault: Fault,
    kind: "stream" | "whole",
    changes?: Record<string, unknown>,
  ): Promise<ChatReply>;
  stop(): Promise<void>;
}

/** Ids of the providers under a fault. */
const patient = "acme";
const hasty = "hasty";
const halting = "halting";
const absent = "absent";

const upstreamEntry = (id: string, baseUrl: string, timeouts: Record<string, number> = {}) =>
  provider({
    id,
    base_url: baseUrl,
    dialect: "openai-chat",
    api_key: "upstream-secret",
    timeouts_ms: timeouts,
    models: [
      {
        id: "acme/large",
        upstream_model: "large-v2",
        context_length: 131072,
        pricing: { prompt: "0.50", completion: "1.50" },
      },
    ],
  });

/** Starts the gateway; `withBackup` adds a second provider that answers well. */
export async function startFaultScenes({
  withBackup,
}: {
  withBackup: boolean;
}): Promise<FaultScenes> {
  const [acme, backup] = await Promise.all([startFaultUpstream(), startFaultUpstream()]);
  const gateway = await startGateway({
    providers: [
      upstreamEntry(patient, acme.baseUrl),
      upstreamEntry(hasty, acme.baseUrl, hastyTimeouts),
      upstreamEntry(halting, acme.baseUrl, haltingTimeouts),
      upstreamEntry(absent, refusingBaseUrl()),
      ...(withBackup ? [backupProvider(backup.baseUrl)] : []),
    ],
  });
  return {
    gateway,
    acme,
    backup,
    async meet(fault, kind, changes = {}) {
      acme.script(fault.script);
      forgetFailuresOf(gateway, providerUnder(fault));
      const order = [providerUnder(fault), ...(withBackup ? ["backup"] : [])];
      const body = chatRequest({
        stream: kind === "stream",
        provider: { order, only: order },
        ...changes,
      });
      return readReply(await gateway.post("/chat/completions", body));
    },
    async stop() {
      await gateway.stop();
      acme.stop();
      backup.stop();
    },
  };
}

/** The id of the provider that is under a fault. */
export function providerUnder(fault: Fault): string {
  if (fault.refusesConnections) return absent;
  if (!fault.waits) return patient;
  return fault.effect === "after-content" ? halting : hasty;
}

/** The kinds of request that a fault is made for. */
export const kindsOf = ({ request }: Fault): readonly ("stream" | "whole")[] =>
  request === "any" ? ["stream", "whole"] : [request];
