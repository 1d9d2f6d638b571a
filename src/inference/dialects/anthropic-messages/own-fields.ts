import type { Extensions } from "../../canonical/extensions.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { RequestFields } from "../request-fields.ts";

/**
 * Members that the canonical form has no name for. Null is Anthropic's word for absent, which its SDKs
 * write into much that clients replay; it is nothing that could be lost.
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
