/** A session of a workspace's callers, named by `session_id` or `x-session-id`. */
export interface Session {
  workspaceId: string;
  id: string;
}

/** Who served a session last. */
export interface SessionPlace {
  provider: string;
  /** Catalog id; another than the requested one where that is a router. */
  model: string;
}
