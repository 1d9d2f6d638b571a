import type { JsonObject } from "../../canonical/json.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import { asArray, asObject, asString, RequestFields } from "../request-fields.ts";
import { fieldsOfOwn } from "./own-fields.ts";

/** The definition of a tool that a block of a later instruction brings along (beta `mid-conversation-tool-changes`). */
function definitionIn(block: unknown): JsonObject | undefined {
  const { type, tool } = asObject(block) ?? {};
  const added = type === "tool_addition" ? asObject(tool) : undefined;
  return added?.type === "tool_definition" ? asObject(added.definition) : undefined;
}

/** Definitions that stand within the conversation; upstreams of other dialects are offered them from its start. */
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

/** Names of the tools that the conversation defines itself, so that they are not offered a second time in this dialect. */
export const laterToolNames = ({ messages }: CanonicalRequest): ReadonlySet<string> =>
  new Set(
    messages.flatMap((message) => {
      const { content } = message.role === "system" ? fieldsOfOwn(message.extensions) : {};
      return (asArray(content) ?? []).flatMap((block) => asString(definitionIn(block)?.name) ?? []);
    }),
  );
