import type { CacheMarker } from "../../../canonical/message.ts";
import type { Extensions } from "../../../canonical/dialect-id.ts";
import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import type { CanonicalRequest } from "../../../canonical/request.ts";
import { asArray, asObject, asString, RequestFields } from "../../wire-fields.ts";
import { legalName } from "../../tools.ts";

/**
 * Members that the canonical form has no name for. Null is Anthropic's word for absent, which its
 * SDKs write into much that clients replay; it is nothing that could be lost.
 */
export const extensionsOf = (
  fields: RequestFields,
  known: ReadonlySet<string>,
): Extensions | undefined => ownFields(fields.object, known);

/** The same for an object of an answer. */
export function ownFields(object: JsonObject, known: ReadonlySet<string>): Extensions | undefined {
  let own: Record<string, JsonValue> | undefined;
  for (const key in object) {
    const value = object[key];
    if (!known.has(key) && value !== undefined && value !== null) (own ??= {})[key] = value;
  }
  return own && { dialect: "anthropic-messages", fields: own };
}

/** Fields of this dialect; none where they are another's. */
export const fieldsOfOwn = (extensions: Extensions | undefined): JsonObject =>
  extensions?.dialect === "anthropic-messages" ? extensions.fields : {};

/** The marker of a block or tool; undefined when it has none. */
export function decodeCache(object: JsonObject): CacheMarker | undefined {
  const marker = asObject(object.cache_control);
  if (marker === undefined) return undefined;
  const { ttl } = marker;
  return ttl === "5m" || ttl === "1h" ? { ttl } : {};
}

/** The marker's wire field. OpenAI's half hour has no equal here and becomes the default. */
export function cacheFields(cache: CacheMarker | undefined): JsonObject {
  if (cache === undefined) return {};
  const { ttl } = cache;
  return { cache_control: { type: "ephemeral", ...((ttl === "5m" || ttl === "1h") && { ttl }) } };
}

/**
 * The definition of a tool that a block of a later instruction brings along (beta
 * `mid-conversation-tool-changes`).
 */
function definitionIn(block: unknown): JsonObject | undefined {
  const { type, tool } = asObject(block) ?? {};
  const added = type === "tool_addition" ? asObject(tool) : undefined;
  return added?.type === "tool_definition" ? asObject(added.definition) : undefined;
}

/**
 * Definitions that stand within the conversation; upstreams of other dialects are offered them from
 * its start.
 */
export function laterDefinitions(body: RequestFields): RequestFields[] {
  return (asArray(body.object.messages) ?? []).flatMap((message, index) => {
    const { role, content } = asObject(message) ?? {};
    const blocks = role === "system" ? (asArray(content) ?? []) : [];
    return blocks.flatMap((block, position) => {
      const definition = definitionIn(block);
      return definition === undefined
        ? []
        : [
            new RequestFields(
              definition,
              `messages[${index}].content[${position}].tool.definition`,
            ),
          ];
    });
  });
}

/**
 * Names of the tools that the conversation defines itself, so that they are not offered a second
 * time in this dialect.
 */
export const laterToolNames = ({ messages }: CanonicalRequest): ReadonlySet<string> =>
  new Set(
    messages.flatMap((message) => {
      const { content } = message.role === "system" ? fieldsOfOwn(message.extensions) : {};
      return (asArray(content) ?? []).flatMap((block) => asString(definitionIn(block)?.name) ?? []);
    }),
  );

const maxLength = 64;

/**
 * A call's id as Anthropic and its clients take them, `^[a-zA-Z0-9_-]+$`. The same id always
 * becomes the same, so that a call and its result still belong together when they come back in a
 * later turn.
 */
export const legalCallId = (id: string): string => legalName(id, maxLength);
