import { type ListKind, listKinds } from "../change-stream.ts";
import type { AgentStreams, ServerPlace } from "./agents/agent-streams.ts";
import type { ServerConnections } from "./server-connections.ts";
import { SpacedRuns } from "./spaced-runs.ts";
import type { UpstreamContents } from "./upstream-contents.ts";
import { storageKeyOf } from "./upstream-server.ts";
import type { UpstreamServers } from "./upstream-servers.ts";

/** Messages between gateways about lists that changed. */
export interface ListChannel {
  publish(name: string, message: string): void;
  on(name: string, listener: (message: string) => void): void;
}

const channelName = "mcp-lists";

/** The parts that learn of changes, and those that pass them on. */
interface ListChangeParts {
  connections: ServerConnections;
  upstreamServers: UpstreamServers;
  contents: Pick<UpstreamContents, "forget">;
  streams: Pick<AgentStreams, "tell">;
  channel: ListChannel | undefined;
  onError(error: unknown): void;
}

/** Returns the change that another gateway reports; undefined for any other message. */
function changeIn(message: string): { place: ServerPlace; kind: ListKind } | undefined {
  const [kindText, workspaceId = "", id = ""] = message.split(" ");
  const kind = listKinds.find((each) => each === kindText);
  const place = { workspaceId: workspaceId === "-" ? null : workspaceId, id };
  return kind === undefined ? undefined : { place, kind };
}

/**
 * Passes changes of lists on to agents: those that servers report, those that are found when tools
 * are read again, and those of servers that are registered, changed and deleted; at this gateway and
 * at others. What is said of tools is checked first, by reading them.
 */
export function shareListChanges({
  connections,
  upstreamServers,
  contents,
  streams,
  channel,
  onError,
}: ListChangeParts): void {
  const apply = (place: ServerPlace, kind: ListKind): void => {
    if (kind !== "tools") contents.forget(place);
    streams.tell(place, kind);
  };
  const share = ({ id, workspaceId }: ServerPlace, kind: ListKind): void => {
    apply({ id, workspaceId }, kind);
    channel?.publish(channelName, `${kind} ${workspaceId ?? "-"} ${id}`);
  };
  const said = new SpacedRuns();
  connections.onListChanged = ({ server, user }, kind) =>
    said.run(`${kind} ${storageKeyOf(server)}`, () =>
      kind === "tools"
        ? void upstreamServers.refresh(server, { user }).catch(onError)
        : share(server, kind),
    );
  upstreamServers.onChanged = (server, isListAlone) => {
    for (const kind of isListAlone ? (["tools"] as const) : listKinds) share(server, kind);
  };
  channel?.on(channelName, (message) => {
    const change = changeIn(message);
    if (change !== undefined) apply(change.place, change.kind);
  });
}
