import {
  type ChangeSink,
  type ChangeStream,
  type ListKind,
  listKinds,
} from "../../change-stream.ts";
import type { ToolCaller } from "../../mcp-service.ts";
import { keyLimitsOf, mayReach, type ToolLimits } from "../exposed-tools.ts";
import type { UpstreamServer } from "../upstream-server.ts";

/** A server of a workspace, or of the operator. */
export type ServerPlace = Pick<UpstreamServer, "id" | "workspaceId">;

/** An agent that wants to hear of changes, and what it may see. */
export interface StreamOwner {
  caller: ToolCaller;
  /** The only server of the stream; null where all servers are joined. */
  serverId: string | null;
  limits: ToolLimits;
}

interface OpenStream extends ChangeStream {
  owner: StreamOwner;
  sink: ChangeSink | undefined;
}

/** The most streams of one credential, and of this gateway. */
const streamsPerKeyMax = 32;
const streamsMax = 2_000;

/** Milliseconds for which changes are gathered, so that a server cannot flood agents. */
const gatherMs = 200;

/** Options of the streams. */
interface AgentStreamsOptions {
  /** Returns a caller with what it may do now; undefined where its credential has ended. */
  liveCaller(caller: ToolCaller): ToolCaller | undefined;
}

const isSame = (left: unknown, right: unknown): boolean =>
  JSON.stringify(left) === JSON.stringify(right);

/**
 * The streams on which agents hear that lists have changed. They carry no data: an agent that hears
 * of a change asks again, with its credential. An agent hears of servers that it may see alone.
 */
export class AgentStreams {
  /** Called with the owner of each new stream. */
  onAdded: ((owner: StreamOwner) => void) | undefined;
  private readonly open = new Set<OpenStream>();
  private readonly changed = new Map<string, { place: ServerPlace; kind: ListKind }>();
  private sending: ReturnType<typeof setTimeout> | undefined;
  private isEnding = false;

  constructor(private readonly options: AgentStreamsOptions) {}

  /** Whether the gateway is about to end, so that no stream is opened any more. */
  get ending(): boolean {
    return this.isEnding;
  }

  /** The owners of the open streams. */
  get owners(): StreamOwner[] {
    return [...this.open].map(({ owner }) => owner);
  }

  /** Whether a stream of this owner is open. */
  isOpen(owner: StreamOwner): boolean {
    return [...this.open].some((each) => each.owner === owner);
  }

  /** Opens a stream; undefined where its credential, or this gateway, has as many as it may. */
  add(owner: StreamOwner): ChangeStream | undefined {
    if (this.isEnding || this.open.size >= streamsMax) return undefined;
    const ofKey = [...this.open].filter((each) => each.owner.caller.key.id === owner.caller.key.id);
    if (ofKey.length >= streamsPerKeyMax) return undefined;
    const stream: OpenStream = {
      owner,
      sink: undefined,
      attach(sink) {
        stream.sink = sink;
      },
      close: () => void this.open.delete(stream),
    };
    this.open.add(stream);
    this.onAdded?.(owner);
    return stream;
  }

  /** Says that a list of a server may be another one than before. */
  tell(place: ServerPlace, kind: ListKind): void {
    if (this.open.size === 0) return;
    this.changed.set(`${kind} ${place.workspaceId ?? ""}/${place.id}`, { place, kind });
    this.sending ??= setTimeout(() => this.send(), gatherMs);
  }

  /**
   * Ends the streams whose credentials have ended, and tells those whose credentials may use other
   * tools than before.
   */
  check(): void {
    for (const stream of this.open) {
      const { caller, limits } = stream.owner;
      const now = this.options.liveCaller(caller);
      if (now === undefined) {
        this.endOne(stream);
        continue;
      }
      const keys = keyLimitsOf(now);
      if (isSame(keys, limits.keys)) continue;
      stream.owner = { ...stream.owner, caller: now, limits: { ...limits, keys } };
      for (const kind of listKinds) stream.sink?.send(kind);
    }
  }

  /** Ends every stream, and opens no more. */
  end(): void {
    this.isEnding = true;
    clearTimeout(this.sending);
    for (const stream of this.open) this.endOne(stream);
  }

  private endOne(stream: OpenStream): void {
    this.open.delete(stream);
    stream.sink?.end();
  }

  private send(): void {
    this.sending = undefined;
    const changes = [...this.changed.values()];
    this.changed.clear();
    for (const { owner, sink } of this.open)
      for (const kind of listKinds)
        if (changes.some((change) => change.kind === kind && isSeen(owner, change.place)))
          sink?.send(kind);
  }
}

/** Returns whether an agent may see a server. */
export const isSeen = (
  { caller, serverId, limits }: StreamOwner,
  { id, workspaceId }: ServerPlace,
): boolean =>
  (workspaceId === null || workspaceId === caller.workspace.id) &&
  (serverId === null || serverId === id) &&
  mayReach(id, limits);
