/** A session of a workspace's callers: requests that are best served by one provider. */
export interface Session {
  workspaceId: string;
  id: string;
  /** The field or header that names it; absent for `session_id`. */
  by?: string;
}

/** The name of sessions that no client names. */
export const prefixName = "cached prefix";

/** What a request's prompt says of the provider that should have it. */
interface Prompt {
  /**
   * Returns a hash of the prefix that providers cache, where the request marks one, or `isCached`
   * says that they cache what they are sent; undefined where there is none.
   */
  prefixHash(isCached: () => boolean): string | undefined;
  /** Returns the provider that sealed the latest reasoning; undefined where none is sealed. */
  sealedBy(): string | undefined;
}

/**
 * What ties a request to one provider: the conversation that it names, or else the prefix of its
 * prompt that a provider has cached, and reasoning that only its maker can read. Only a name is
 * read before the plan has several candidates.
 */
export class Affinity {
  private readonly workspaceId: string;
  private readonly named: Session | undefined;
  private prefix: Session | undefined;

  /** `prompt` is undefined on surfaces whose prompts no provider caches. */
  constructor(
    private readonly prompt: Prompt | undefined,
    { workspaceId, named }: { workspaceId: string; named: Session | undefined },
  ) {
    this.workspaceId = workspaceId;
    this.named = named;
  }

  /** The session that is known so far: the named one, or that of the prefix once it was asked for. */
  get session(): Session | undefined {
    return this.named ?? this.prefix;
  }

  /** Returns the session of the request. Without a name it is that of its cached prefix. */
  sessionAmong(isCached: () => boolean): Session | undefined {
    if (this.session !== undefined) return this.session;
    const hash = this.prompt?.prefixHash(isCached);
    if (hash === undefined) return undefined;
    this.prefix = { workspaceId: this.workspaceId, id: `prefix ${hash}`, by: prefixName };
    return this.prefix;
  }

  /** Returns the provider that sealed the latest reasoning in the request. */
  sealedBy(): string | undefined {
    return this.prompt?.sealedBy();
  }
}

/** How a request names its session: by `session_id`, or by another name that clients send. */
interface NamingRequest {
  sessionId: string | undefined;
  conversation?: Required<Pick<Session, "id" | "by">> | undefined;
  caller: { workspace: { id: string } };
}

/** Returns the session that a request names; undefined where it names none. */
export function namedSession({
  sessionId,
  conversation,
  caller,
}: NamingRequest): Session | undefined {
  const { id, by } = conversation ?? { id: sessionId, by: "session_id" };
  return id === undefined ? undefined : { workspaceId: caller.workspace.id, id, by };
}
