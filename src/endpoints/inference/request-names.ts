import type { RequestHeaders } from "../../http/served-request.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { editMembers } from "../../platform/kernel/json/json-members.ts";
import type { ConversationName } from "../../inference/pipeline/inference-call.ts";

type Body = Readonly<Record<string, unknown>>;

const customerHeader = brandHeader("Customer");
const subjectCharactersMax = 200;

/** Returns the end user that the header of a request names. */
export const customerHeaderOf = (headers: RequestHeaders): string | undefined =>
  customerText(headers.get(customerHeader));

/** Returns the end user that a request names: by header, or in the fields of its vendor. */
export const customerOf = (body: Body, headers: RequestHeaders): string | undefined =>
  customerText(headers.get(customerHeader) ?? body["safety_identifier"] ?? body["user"]);

function customerText(named: unknown): string | undefined {
  if (typeof named !== "string") return undefined;
  // Postgres refuses a zero byte, and lone surrogates would come back changed.
  const text = named
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, "")
    .trim();
  return text === "" ? undefined : text.slice(0, subjectCharactersMax).toWellFormed();
}

/** Returns the metadata of a request, whose members budgets may count as tags. */
export function metadataOf({ metadata }: Body): Body | undefined {
  return typeof metadata === "object" && metadata !== null ? (metadata as Body) : undefined;
}

/**
 * Returns the model that a request's path names, as Azure's deployments do; undefined where the
 * body names it. Clients that do not encode the slash of an id send it as two segments.
 */
export function modelInPath({ request }: Pick<RequestContext, "request">): string | undefined {
  const { name, slug } = request.params;
  return slug === undefined ? name : `${name}/${slug}`;
}

/** Returns a body with the model that its path names, which takes precedence over its own. */
export function withModelInPath<Sent extends { text: string; body: Record<string, unknown> }>(
  context: Pick<RequestContext, "request">,
  sent: Sent,
): Sent {
  const model = modelInPath(context);
  if (model === undefined) return sent;
  return {
    ...sent,
    text: editMembers(sent.text, new Map([["model", JSON.stringify(model)]])),
    body: { ...sent.body, model },
  };
}

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

/** Returns the run that the metadata of a body names; undefined where it names none. */
export function runNamedIn({ metadata }: Body): string | undefined {
  if (typeof metadata !== "object" || metadata === null) return undefined;
  const { run } = metadata as Record<string, unknown>;
  return typeof run === "string" ? run : undefined;
}
