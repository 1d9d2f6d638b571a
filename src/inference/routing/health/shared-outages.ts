import type { HealthWindows, OutageNews } from "./health-windows.ts";

/** The channel between the gateways that share a server. */
interface OutageChannel {
  on(name: string, listener: (message: string) => void): void;
  publish(name: string, message: string): void;
}

const channelName = "outages";

/**
 * Reports outages to other gateways as they are seen, and accepts their reports. Nothing is kept on
 * the server: a gateway that misses a report receives it again within a second while the outage
 * lasts, or sees the outage itself.
 */
export function shareOutages(
  health: Pick<HealthWindows, "share" | "receive">,
  channel: OutageChannel,
): void {
  health.share(({ said, providerId, modelId }) =>
    channel.publish(channelName, JSON.stringify([said, providerId, modelId])),
  );
  channel.on(channelName, (message) => {
    const [said, providerId, modelId] = JSON.parse(message) as [
      OutageNews["said"],
      string,
      string | null,
    ];
    health.receive({ said, providerId, modelId: modelId ?? undefined });
  });
}
