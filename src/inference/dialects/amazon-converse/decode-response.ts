import { GatewayError } from "../../../platform/kernel/errors.ts";
import type {
  Annotation,
  ImagePart,
  AssistantPart,
  ToolCallPart,
} from "../../canonical/message.ts";
import {
  reconcileFinish,
  type CanonicalResponse,
  type MeteredUsage,
} from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { Provenance, ReasoningPart } from "../../canonical/reasoning.ts";
import type { DecodeContext } from "../dialect.ts";
import { asArray, asNumber, asObject, asString, withoutUndefined } from "../shared/wire-fields.ts";
import { withMembers } from "../shared/schemas/member-names.ts";
import { unwrapInput } from "../shared/tools.ts";
import { decodeFinish, readFailure } from "./answer-fields.ts";
import { readError } from "./errors.ts";
import { readUsage } from "./usage.ts";

/**
 * Decodes a Converse answer; see `UpstreamDialect.decodeResponse`. The dialect reports no id, model
 * or time. Members of wrong types count as absent.
 */
export function decodeResponse(body: unknown, context: DecodeContext = {}): CanonicalResponse {
  const fields = asObject(body);
  const content = asArray(asObject(asObject(fields?.output)?.message)?.content);
  if (fields === undefined || content === undefined) throw notAnAnswer(body);
  const stopReason = asString(fields.stopReason);
  const failure = readFailure(stopReason);
  if (failure !== undefined) throw upstreamError(failure.message, failure.code);
  const parts = content.flatMap((value) => decodeBlock(value, context));
  const hasCalls = parts.some((part) => part.type === "tool-call");
  const tier = asString(asObject(fields.serviceTier)?.type);
  return withoutUndefined<CanonicalResponse>({
    id: "",
    model: "",
    createdAtSeconds: 0,
    choices: [{ index: 0, parts, finish: reconcileFinish(decodeFinish(stopReason), hasCalls) }],
    usage: readUsage(fields.usage, fields.serviceTier),
    serviceTier: tier,
  });
}

/** Returns the usage of an answer that ended in the model's own failure; undefined for others. */
export function usageOfFailure(body: unknown): MeteredUsage | undefined {
  const fields = asObject(body);
  return readFailure(asString(fields?.stopReason)) && readUsage(fields?.usage);
}

function notAnAnswer(body: unknown): GatewayError {
  const fields = asObject(body);
  const isError = asString(fields?.message ?? fields?.Message) !== undefined;
  return isError
    ? upstreamError(readError(502, body).message)
    : new GatewayError("upstream_error", "The provider's answer is no Converse answer.");
}

const upstreamError = (message: string, code?: string): GatewayError =>
  new GatewayError("upstream_error", message, {
    metadata: {
      upstream_message: message,
      ...(code !== undefined && { upstream_error: { code } }),
    },
  });

/** Decodes a block, whose only member names its kind. */
function decodeBlock(value: JsonValue, context: DecodeContext): AssistantPart[] {
  const block = asObject(value);
  if (block === undefined) return [];
  const text = asString(block.text);
  if (text !== undefined) return text === "" ? [] : [{ type: "text", text }];
  const thought = asObject(block.reasoningContent);
  if (thought !== undefined) return decodeThought(thought, context);
  const call = asObject(block.toolUse);
  if (call !== undefined) return [decodeCall(call, context)];
  const cited = asObject(block.citationsContent);
  if (cited !== undefined) return decodeCited(cited);
  const image = decodeImage(asObject(block.image));
  if (image !== undefined) return [image];
  return Object.keys(block).length === 0
    ? []
    : [{ type: "opaque", dialect: "amazon-converse", value: block }];
}

function decodeThought(thought: JsonObject, context: DecodeContext): ReasoningPart[] {
  const encrypted = asString(thought.redactedContent) || undefined;
  if (encrypted !== undefined) return [{ type: "reasoning", encrypted, ...provenanceOf(context) }];
  const fields = asObject(thought.reasoningText);
  const text = asString(fields?.text) || undefined;
  const signature = asString(fields?.signature) || undefined;
  if (text === undefined && signature === undefined) return [];
  return [
    {
      type: "reasoning",
      ...(text !== undefined && { text }),
      ...(signature !== undefined && { signature, ...provenanceOf(context) }),
    },
  ];
}

/** Returns the provider as the maker of an upstream's seals. */
export const provenanceOf = ({ providerId }: DecodeContext): { provenance?: Provenance } =>
  providerId === undefined ? {} : { provenance: { providerId } };

function decodeCall(call: JsonObject, { toolAliases }: DecodeContext): ToolCallPart {
  const wireName = asString(call.name) ?? "";
  const alias = toolAliases?.get(wireName);
  const input = call.input ?? {};
  const text = JSON.stringify(withMembers(input, alias?.members));
  const unwraps = alias?.unwrapsInput === true;
  return withoutUndefined<ToolCallPart>({
    type: "tool-call",
    kind: unwraps ? "custom" : "function",
    id: asString(call.toolUseId) ?? "",
    name: alias?.name ?? wireName,
    namespace: alias?.namespace,
    arguments: unwraps ? unwrapInput(text) : text,
  });
}

function decodeCited(cited: JsonObject): AssistantPart[] {
  const text = (asArray(cited.content) ?? [])
    .map((piece) => asString(asObject(piece)?.text) ?? "")
    .join("");
  if (text === "") return [];
  const annotations = (asArray(cited.citations) ?? []).flatMap((citation) => {
    const annotation = decodeCitation(asObject(citation));
    return annotation === undefined ? [] : [annotation];
  });
  return [{ type: "text", text, ...(annotations.length > 0 && { annotations }) }];
}

/** Members that locate a passage in a document, with the unit that they count. */
const documentUnits = [
  ["documentChar", "character"],
  ["documentPage", "page"],
  ["documentChunk", "block"],
] as const;

/** Returns a citation; undefined for locations that no other dialect has. */
export function decodeCitation(citation: JsonObject | undefined): Annotation | undefined {
  const location = asObject(citation?.location);
  if (citation === undefined || location === undefined) return undefined;
  const title = asString(citation.title);
  const citedText = (asArray(citation.sourceContent) ?? [])
    .map((piece) => asString(asObject(piece)?.text) ?? "")
    .join("");
  const shared = {
    ...(title !== undefined && { title }),
    ...(citedText !== "" && { citedText }),
  };
  const url = asString(asObject(location.web)?.url);
  if (url !== undefined) return { type: "url", url, ...shared };
  for (const [member, unit] of documentUnits) {
    const place = asObject(location[member]);
    if (place === undefined) continue;
    return {
      type: "document",
      documentIndex: asNumber(place.documentIndex) ?? 0,
      ...shared,
      unit,
      start: asNumber(place.start) ?? 0,
      end: asNumber(place.end) ?? 0,
    };
  }
  return { type: "opaque", dialect: "amazon-converse", value: citation };
}

/** Returns an image with its bytes; undefined for any other value. */
export function decodeImage(image: JsonObject | undefined): ImagePart | undefined {
  const data = asString(asObject(image?.source)?.bytes);
  if (data === undefined) return undefined;
  const mediaType = `image/${asString(image?.format) ?? "png"}`;
  return { type: "image", source: { type: "base64", mediaType, data } };
}
