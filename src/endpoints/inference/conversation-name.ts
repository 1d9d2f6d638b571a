import type { RequestHeaders } from "../../http/served-request.ts";
import type { ConversationName } from "../../inference/pipeline/inference-call.ts";

type Body = Readonly<Record<string, unknown>>;

/** Headers that name a conversation: Claude Code's, and Codex's in both of its spellings (2026-11). */
const headerNames = ["x-claude-code-session-id", "session-id", "session_id"] as const;

/**
 * Returns how a request names its conversation, in the order of precedence; undefined where it does
 * not. `sessionId` is what the gateway's own field or header says.
 */
export function conversationOf(
  body: Body,
  { headers, sessionId }: { headers?: RequestHeaders; sessionId: string | undefined },
): ConversationName | undefined {
  if (sessionId !== undefined) return { id: sessionId, by: "session_id" };
  const cacheKey = body["prompt_cache_key"];
  if (typeof cacheKey === "string" && cacheKey !== "") return named(cacheKey, "prompt_cache_key");
  for (const name of headerNames) {
    const id = headers?.get(name);
    if (id) return named(id, name);
  }
  const id = claudeCodeSession(body["metadata"]);
  return id === undefined ? undefined : named(id, "metadata.user_id");
}

/** The most characters of a name that is kept as it is. */
const lengthMax = 256;

const named = (id: string, by: string): ConversationName => ({
  id: id.length > lengthMax ? `hash ${Bun.hash.wyhash(id).toString(36)}` : id,
  by,
});

/**
 * Returns the session within Claude Code's `metadata.user_id`: JSON with a `session_id`, or in
 * older versions a text that ends in `_session_` and the id. Other user ids name a person, who may
 * have many conversations.
 */
function claudeCodeSession(metadata: unknown): string | undefined {
  const userId = (Object(metadata) as Body)["user_id"];
  if (typeof userId !== "string") return undefined;
  return /"session_id"\s*:\s*"([^"]+)"|_session_([\w-]+)$/.exec(userId)?.slice(1).find(Boolean);
}
