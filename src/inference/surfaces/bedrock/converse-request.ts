import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { Loss } from "../../canonical/request.ts";
import {
  asArray,
  asNumber,
  asObject,
  asString,
  badRequest,
  objectsIn,
  unsupportedContent,
  withoutUndefined,
} from "../../dialects/shared/wire-fields.ts";

/** A request in Converse's form as one of Messages, and what that cannot express. */
interface ReshapedConverse {
  body: Record<string, JsonValue | undefined>;
  losses: readonly Loss[];
}

/** The output cap where a request names none: Converse takes the model's own, Messages needs one. */
const maxTokensDefault = 4_096;

/** Members of `additionalModelRequestFields` that Messages has. */
const sharedExtras = ["thinking", "top_k", "output_config", "context_management"];

/** Members without a counterpart, which change no answer. */
const lostMembers = ["performanceConfig", "serviceTier", "promptVariables"];

/**
 * Returns the Messages request of `POST /model/{id}/converse`, whose blocks are nearly the same.
 * Throws `GatewayError` for what would change an answer if it were dropped.
 */
export function messagesOfConverse(
  body: JsonObject,
  { model, stream }: { model: string; stream: boolean },
): ReshapedConverse {
  if (body.guardrailConfig !== undefined)
    throw unsupportedContent("guardrailConfig", "guardrails of Bedrock are not applied here.");
  const settings = asObject(body.inferenceConfig) ?? {};
  const extras = asObject(body.additionalModelRequestFields) ?? {};
  const losses: Loss[] = [
    ...lostMembers.filter((name) => body[name] !== undefined),
    ...Object.keys(extras)
      .filter((name) => !sharedExtras.includes(name))
      .map((name) => `additionalModelRequestFields.${name}`),
  ].map((field) => ({ field, reason: "Messages has no such field" }));
  const system = blocksOf(body.system, "system");
  return {
    body: withoutUndefined<JsonObject>({
      model,
      stream,
      max_tokens: asNumber(settings.maxTokens) ?? maxTokensDefault,
      temperature: settings.temperature,
      top_p: settings.topP,
      stop_sequences: settings.stopSequences,
      system: system.length > 0 ? system : undefined,
      messages: objectsIn(body.messages).map((message, index) => ({
        role: message.role,
        content: blocksOf(message.content, `messages[${index}].content`),
      })),
      ...toolsOf(asObject(body.toolConfig)),
      ...Object.fromEntries(sharedExtras.map((name) => [name, extras[name]])),
    }),
    losses,
  };
}

function toolsOf(config: JsonObject | undefined): JsonObject {
  if (config === undefined) return {};
  const tools: Record<string, JsonValue | undefined>[] = [];
  for (const [index, tool] of objectsIn(config.tools).entries()) {
    const spec = asObject(tool.toolSpec);
    const last = tools.at(-1);
    if (spec !== undefined)
      tools.push(
        withoutUndefined({
          name: spec.name,
          description: spec.description,
          input_schema: asObject(spec.inputSchema)?.json ?? { type: "object" },
          strict: spec.strict,
        }),
      );
    else if (tool.cachePoint !== undefined && last !== undefined) last["cache_control"] = ephemeral;
    else if (tool.cachePoint === undefined)
      throw unsupportedContent(`toolConfig.tools[${index}]`, "is no toolSpec.");
  }
  const choice = asObject(config.toolChoice) ?? {};
  const named = asString(asObject(choice.tool)?.name);
  const chosen =
    named !== undefined
      ? { type: "tool", name: named }
      : choice.any !== undefined
        ? { type: "any" }
        : choice.auto !== undefined
          ? { type: "auto" }
          : undefined;
  return { tools, ...(chosen && { tool_choice: chosen }) };
}

const ephemeral = { type: "ephemeral" };

/** Returns the blocks of Messages for those of Converse; a cache point marks the one before it. */
function blocksOf(value: JsonValue | undefined, place: string): JsonObject[] {
  const blocks: Record<string, JsonValue | undefined>[] = [];
  for (const [index, block] of objectsIn(asArray(value)).entries()) {
    const last = blocks.at(-1);
    if (block.cachePoint !== undefined) {
      const ttl = asString(asObject(block.cachePoint)?.ttl);
      if (last !== undefined) last["cache_control"] = ttl ? { ...ephemeral, ttl } : ephemeral;
      continue;
    }
    blocks.push(blockOf(block, `${place}[${index}]`));
  }
  return blocks;
}

function blockOf(block: JsonObject, place: string): Record<string, JsonValue | undefined> {
  const text = asString(block.text) ?? asString(asObject(asObject(block.guardContent)?.text)?.text);
  if (text !== undefined) return { type: "text", text };
  const image = asObject(block.image);
  if (image !== undefined)
    return {
      type: "image",
      source: bytesOf(image, { place: `${place}.image`, mediaType: `image/${image.format}` }),
    };
  const document = asObject(block.document);
  if (document !== undefined) return documentOf(document, `${place}.document`);
  const use = asObject(block.toolUse);
  if (use !== undefined)
    return { type: "tool_use", id: use.toolUseId, name: use.name, input: use.input ?? {} };
  const result = asObject(block.toolResult);
  if (result !== undefined)
    return withoutUndefined({
      type: "tool_result",
      tool_use_id: result.toolUseId,
      content: objectsIn(result.content).map((part, index) =>
        part.json === undefined
          ? blockOf(part, `${place}.toolResult.content[${index}]`)
          : { type: "text", text: JSON.stringify(part.json) },
      ),
      is_error: result.status === "error" ? true : undefined,
    });
  const thought = asObject(block.reasoningContent);
  if (thought !== undefined) return thoughtOf(thought);
  const [kind = "nothing"] = Object.keys(block);
  throw unsupportedContent(place, `has ${kind}, which is not served at this path.`);
}

function thoughtOf({ reasoningText, redactedContent }: JsonObject): JsonObject {
  const { text, signature } = asObject(reasoningText) ?? {};
  return redactedContent === undefined
    ? { type: "thinking", thinking: text ?? "", signature: signature ?? "" }
    : { type: "redacted_thinking", data: redactedContent };
}

/** Media types of documents by Converse's formats. */
const documentTypes: Readonly<Record<string, string>> = {
  pdf: "application/pdf",
  doc: "application/msword",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  xls: "application/vnd.ms-excel",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};

function documentOf(document: JsonObject, place: string): Record<string, JsonValue | undefined> {
  const source = asObject(document.source) ?? {};
  const format = asString(document.format) ?? "txt";
  const mediaType = documentTypes[format];
  const bytes = asString(source.bytes);
  const text =
    asString(source.text) ??
    (mediaType === undefined && bytes !== undefined
      ? Buffer.from(bytes, "base64").toString("utf8")
      : undefined);
  return withoutUndefined({
    type: "document",
    title: document.name,
    context: document.context,
    citations: asObject(document.citations)?.enabled === true ? { enabled: true } : undefined,
    source:
      text === undefined
        ? bytesOf(document, { place, mediaType: mediaType ?? "text/plain" })
        : { type: "text", media_type: "text/plain", data: text },
  });
}

function bytesOf(
  media: JsonObject,
  { place, mediaType }: { place: string; mediaType: string },
): JsonObject {
  const source = asObject(media.source);
  const data = asString(source?.bytes);
  if (data !== undefined) return { type: "base64", media_type: mediaType, data };
  if (source?.s3Location !== undefined)
    throw unsupportedContent(place, "is in S3, which the gateway does not read; send the bytes.");
  throw badRequest(place, "needs source.bytes.");
}
