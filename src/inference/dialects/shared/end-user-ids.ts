import { editInParts, joined, memberText } from "../../../platform/kernel/json/json-members.ts";

/** Members by which providers tell the users of one account apart, in chat and Responses. */
const idMembers = ["user", "safety_identifier", "prompt_cache_key"] as const;

/** Returns an id of a caller's user as a provider is sent it. */
export type ScopeId = (id: string) => string;

const userIdOf = (metadata: unknown): unknown =>
  (Object(metadata) as { user_id?: unknown }).user_id;

/** Returns whether a client's request names its user, or a cache, in any dialect. */
export const namesIds = (body: Readonly<Record<string, unknown>>): boolean =>
  idMembers.some((name) => typeof body[name] === "string") ||
  typeof userIdOf(body["metadata"]) === "string";

/**
 * Replaces the ids of a caller's users in a request that the platform's own credential pays for.
 * Workspaces share the account, so equal ids of two of them must not look like one user, nor share
 * a cache. Returns undefined where there is none. The client's request names one (`namesIds`). With `inMetadata` the upstream reads
 * `metadata.user_id`; others keep `metadata` as the caller's own notes.
 */
export function withScopedIds(
  text: string,
  { inMetadata, scope }: { inMetadata: boolean; scope: ScopeId },
): { text: string; parts: readonly string[] } | undefined {
  if (!text.startsWith("{")) return undefined;
  const edits = new Map<string, string>();
  if (inMetadata) {
    const metadata: unknown = JSON.parse(memberText(text, "metadata") ?? "null");
    const id = userIdOf(metadata);
    if (typeof id === "string")
      edits.set("metadata", JSON.stringify({ ...Object(metadata), user_id: scope(id) }));
  } else
    for (const name of idMembers) {
      const id: unknown = JSON.parse(memberText(text, name) ?? "null");
      if (typeof id === "string") edits.set(name, JSON.stringify(scope(id)));
    }
  if (edits.size === 0) return undefined;
  const parts = editInParts(text, edits);
  return { text: joined(parts), parts };
}
