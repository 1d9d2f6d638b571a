import type { HealthWindows, OutageNews } from "./health-windows.ts";

/** Words between the gateways that share a server. */
interface OutageChannel {
  on(name: string, listener: (message: string) => void): void;
  say(name: string, message: string): void;
}

const channelName = "outages";

/**
 * Tells other gateways of outages as they are seen, and takes their word for theirs. Nothing is
 * kept on the server: what a gateway misses it hears again within a second while the outage lasts,
 * or sees for itself.
 */
export function shareOutages(
  health: Pick<HealthWindows, "share" | "hear">,
  channel: OutageChannel,
): void {
  health.share(({ said, providerId, modelId }) =>
    channel.say(channelName, JSON.stringify([said, providerId, modelId])),
  );
  channel.on(channelName, (message) => {
    const [said, providerId, modelId] = JSON.parse(message) as [
      OutageNews["said"],
      string,
      string | null,
    ];
    health.hear({ said, providerId, modelId: modelId ?? undefined });
  });
}
