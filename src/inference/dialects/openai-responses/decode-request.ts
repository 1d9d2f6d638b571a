import type { JsonObject } from "../../canonical/json.ts";
import type { ReasoningRequest } from "../../canonical/reasoning.ts";
import type { CanonicalRequest, OutputFormat, Sampling } from "../../canonical/request.ts";
import { decodeGateway, decodePromptCaching } from "../decode-gateway.ts";
import { RequestFields } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { decodeInput } from "./decode-input.ts";
import { decodeToolFields } from "./decode-tools.ts";
import { responsesRequestFields } from "./request-schema.ts";
import { validateResponsesEnvelope } from "./validate-envelope.ts";

/** `include` entries that the gateway itself understands; the others are the upstream's. */
export const includedSeals = "reasoning.encrypted_content";
export const includedProbabilities = "message.output_text.logprobs";

/**
 * A Responses request from the wire; see `ClientDialect.decodeRequest`. Fields of the stored lifecycle
 * are the gateway's own business and leave no trace.
 */
export function decodeRequest(value: unknown): CanonicalRequest {
  const body = new RequestFields(value, "");
  validateResponsesEnvelope(body.object);
  const { messages, tools } = decodeInput(body);
  const text = body.nested("text");
  return withoutUndefined<CanonicalRequest>({
    dialect: "openai-responses",
    model: body.requiredString("model"),
    messages,
    stream: body.boolean("stream") ?? false,
    streamOptions: decodeStreamOptions(body.nested("stream_options")),
    ...decodeToolFields(body, tools),
    sampling: filled(decodeSampling(body)),
    maxOutputTokens: body.number("max_output_tokens"),
    reasoning: decodeReasoningRequest(body.nested("reasoning")),
    output: decodeOutput(text?.nested("format")),
    verbosity: text?.string("verbosity"),
    logProbabilities: decodeLogProbabilities(body),
    modalities: body.strings("modalities"),
    promptCaching: filled(decodePromptCaching(body)),
    metadata: body.objectField("metadata"),
    endUserId: body.string("user"),
    safetyIdentifier: body.string("safety_identifier"),
    serviceTier: body.string("service_tier"),
    store: body.boolean("store"),
    moderation: body.objectField("moderation"),
    gateway: filled(decodeGateway(body)),
    extensions: decodeExtensions(body),
  });
}

/** The object, or undefined when nothing stands in it. */
const filled = <T extends object>(fields: T): T | undefined => (Object.keys(fields).length === 0 ? undefined : fields);

function decodeStreamOptions(options: RequestFields | undefined): CanonicalRequest["streamOptions"] {
  const includeObfuscation = options?.boolean("include_obfuscation");
  return includeObfuscation === undefined ? undefined : { includeObfuscation };
}

/** Beside OpenAI's two, those that Open Responses knows and those that servers behind the gateway take. */
const decodeSampling = (body: RequestFields): Sampling => withoutUndefined<Sampling>({
  temperature: body.number("temperature"),
  topP: body.number("top_p"),
  topK: body.number("top_k"),
  minP: body.number("min_p"),
  topA: body.number("top_a"),
  frequencyPenalty: body.number("frequency_penalty"),
  presencePenalty: body.number("presence_penalty"),
  repetitionPenalty: body.number("repetition_penalty"),
  seed: body.number("seed"),
});

const knownReasoningFields = new Set(["effort", "max_tokens", "enabled", "summary", "exclude"]);

const decodeReasoningRequest = (reasoning: RequestFields | undefined): ReasoningRequest | undefined =>
  reasoning && filled(withoutUndefined<ReasoningRequest>({
    effort: reasoning.string("effort"),
    budgetTokens: reasoning.number("max_tokens"),
    enabled: reasoning.boolean("enabled"),
    summary: reasoning.string("summary"),
    exclude: reasoning.boolean("exclude"),
    extensions: reasoning.unknown("openai-responses", knownReasoningFields),
  }));

function decodeOutput(format: RequestFields | undefined): OutputFormat | undefined {
  switch (format?.requiredString("type")) {
    case "text": return { type: "text" };
    case "json_object": return { type: "json" };
    case "json_schema":
      return withoutUndefined<Extract<OutputFormat, { type: "json-schema" }>>({
        type: "json-schema",
        schema: format?.objectField("schema"),
        name: format?.string("name"),
        description: format?.string("description"),
        strict: format?.boolean("strict"),
      });
    default: return undefined;
  }
}

function decodeLogProbabilities(body: RequestFields): CanonicalRequest["logProbabilities"] {
  const top = body.number("top_logprobs");
  const wanted = body.strings("include")?.includes(includedProbabilities) === true;
  if (!wanted && !top) return undefined;
  return { ...(top !== undefined && { top }) };
}

/** Unknown fields, further `include` entries, and a text format that only the client's own dialect may know. */
function decodeExtensions(body: RequestFields): CanonicalRequest["extensions"] {
  const fields: Record<string, JsonObject[string]> = { ...body.unknown("openai-responses", responsesRequestFields)?.fields };
  const include = body.strings("include")?.filter((entry) => entry !== includedSeals && entry !== includedProbabilities) ?? [];
  if (include.length > 0) fields.include = include;
  const format = body.nested("text")?.nested("format");
  if (format !== undefined && decodeOutput(format) === undefined) fields.text = { format: format.object };
  return Object.keys(fields).length === 0 ? undefined : { dialect: "openai-responses", fields };
}
