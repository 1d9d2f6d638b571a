import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Extensions } from "../../canonical/dialect-id.ts";
import { reconcileFinish, type CanonicalResponse } from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { AssistantPart, ToolCallPart } from "../../canonical/message.ts";
import type { Provenance, ReasoningPart } from "../../canonical/reasoning.ts";
import type { DecodeContext } from "../dialect.ts";
import { asArray, asObject, asString, withoutUndefined } from "../shared/wire-fields.ts";
import { withMembers } from "../shared/schemas/member-names.ts";
import { unwrapInput } from "../shared/tools.ts";
import { decodeCitations, decodeFinish, ownFields } from "./answer-fields.ts";
import { readError } from "./errors.ts";
import { readUsage } from "./usage.ts";

const knownFields: ReadonlySet<string> = new Set([
  "id",
  "type",
  "role",
  "model",
  "content",
  "stop_reason",
  "stop_sequence",
  "stop_details",
  "usage",
]);

/**
 * Decodes a Messages answer from an upstream; see `UpstreamDialect.decodeResponse`. Fields of wrong
 * types count as absent.
 */
export function decodeResponse(body: unknown, context: DecodeContext = {}): CanonicalResponse {
  const fields = asObject(body);
  const content = asArray(fields?.content);
  if (fields === undefined || content === undefined) throw notAnAnswer(body);
  const parts = content.flatMap((value) => decodeBlock(value, context));
  return withoutUndefined<CanonicalResponse>({
    id: asString(fields.id) ?? "",
    model: asString(fields.model) ?? "",
    // The dialect reports no creation time.
    createdAtSeconds: 0,
    choices: [
      {
        index: 0,
        parts,
        finish: reconcileFinish(
          decodeFinish(fields),
          parts.some((part) => part.type === "tool-call"),
        ),
      },
    ],
    usage: readUsage(fields.usage),
    extensions: ownFields(fields, knownFields),
  });
}

function notAnAnswer(body: unknown): GatewayError {
  const fields = asObject(body);
  const reported =
    fields?.error === undefined || fields.error === null ? undefined : readError(502, body);
  return new GatewayError(
    "upstream_error",
    reported?.message ?? "The provider's answer is no message.",
    {
      ...(reported && { metadata: { upstream_message: reported.message } }),
    },
  );
}

function decodeBlock(value: JsonValue, context: DecodeContext): AssistantPart[] {
  const block = asObject(value);
  if (block === undefined) return [];
  switch (block.type) {
    case "text": {
      const text = asString(block.text) ?? "";
      const annotations = decodeCitations(block.citations);
      return text === "" ? [] : [{ type: "text", text, ...(annotations && { annotations }) }];
    }
    case "thinking":
    case "redacted_thinking":
      return [decodeThought(block, context)].filter(saysSomething);
    case "tool_use":
      return [decodeCall(block, context)];
    default:
      return [{ type: "opaque", dialect: "anthropic-messages", value: block }];
  }
}

/** Returns the upstream as the maker of every seal that it sends, in any form. */
export const provenanceOf = ({ providerId }: DecodeContext): { provenance?: Provenance } =>
  providerId === undefined ? {} : { provenance: { providerId } };

const saysSomething = ({ text, signature, encrypted }: ReasoningPart): boolean =>
  Boolean(text ?? signature ?? encrypted);

function decodeThought(block: JsonObject, context: DecodeContext): ReasoningPart {
  if (block.type === "redacted_thinking") {
    return { type: "reasoning", encrypted: asString(block.data) ?? "", ...provenanceOf(context) };
  }
  const signature = asString(block.signature) || undefined;
  const text = asString(block.thinking) || undefined;
  return {
    type: "reasoning",
    ...(text !== undefined && { text }),
    ...(signature !== undefined && { signature, ...provenanceOf(context) }),
  };
}

function decodeCall(block: JsonObject, { toolAliases }: DecodeContext): ToolCallPart {
  const wireName = asString(block.name) ?? "";
  const alias = toolAliases?.get(wireName);
  const input = block.input ?? {};
  const text = JSON.stringify(withMembers(input, alias?.members));
  const unwraps = alias?.unwrapsInput === true;
  return withoutUndefined<ToolCallPart>({
    type: "tool-call",
    kind: unwraps ? "custom" : "function",
    id: asString(block.id) ?? "",
    name: alias?.name ?? wireName,
    namespace: alias?.namespace,
    arguments: unwraps ? unwrapInput(text) : text,
    ...callExtensions(block),
  });
}

const callFields: ReadonlySet<string> = new Set(["type", "id", "name", "input"]);
const directCallFields: ReadonlySet<string> = new Set([...callFields, "caller"]);

/**
 * Returns the additional fields of a call. That the model itself made the call is the default in
 * every dialect and is omitted.
 */
export function callExtensions(block: JsonObject): { extensions?: Extensions } {
  const direct = asObject(block.caller)?.type === "direct";
  const extensions = ownFields(block, direct ? directCallFields : callFields);
  return extensions === undefined ? {} : { extensions };
}
