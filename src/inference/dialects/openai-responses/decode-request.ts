import { decodeToolFields } from "./items/decode-tools.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReasoningRequest } from "../../canonical/reasoning.ts";
import type { CanonicalRequest, OutputFormat } from "../../canonical/request.ts";
import {
  decodeSchemaOutput,
  decodeSharedFields,
  decodeSharedSampling,
  filled,
} from "../shared/openai-fields.ts";
import { RequestFields, joined, withoutUndefined } from "../shared/wire-fields.ts";
import { decodeInput } from "./items/decode-input.ts";
import { checkResponsesRequest, responsesRequestFields } from "./request-schema.ts";

/**
 * The `include` entry that the gateway itself understands; all others are passed to the upstream.
 */
export const includedSeals = "reasoning.encrypted_content";
export const includedProbabilities = "message.output_text.logprobs";

/**
 * Decodes a Responses request; see `ClientDialect.decodeRequest`. Fields of the stored lifecycle
 * are handled by the gateway and not decoded.
 */
export function decodeRequest(value: unknown): CanonicalRequest {
  const body = new RequestFields(value, "");
  checkResponsesRequest(body.object);
  const { messages, tools } = decodeInput(body);
  const text = body.nested("text");
  return joined<CanonicalRequest>(
    {
      dialect: "openai-responses",
      model: body.requiredString("model"),
      messages,
      stream: body.boolean("stream") ?? false,
      streamOptions: decodeStreamOptions(body.nested("stream_options")),
    },
    decodeToolFields(body, tools),
    {
      sampling: filled(decodeSharedSampling(body)),
      maxOutputTokens: body.number("max_output_tokens"),
      reasoning: decodeReasoningRequest(body.nested("reasoning")),
      output: decodeOutput(text?.nested("format")),
      verbosity: text?.string("verbosity"),
      logProbabilities: decodeLogProbabilities(body),
    },
    decodeSharedFields(body),
    { extensions: decodeExtensions(body) },
  );
}

function decodeStreamOptions(
  options: RequestFields | undefined,
): CanonicalRequest["streamOptions"] {
  const includeObfuscation = options?.boolean("include_obfuscation");
  return includeObfuscation === undefined ? undefined : { includeObfuscation };
}

const knownReasoningFields = new Set(["effort", "max_tokens", "enabled", "summary", "exclude"]);

const decodeReasoningRequest = (
  reasoning: RequestFields | undefined,
): ReasoningRequest | undefined =>
  reasoning &&
  filled(
    withoutUndefined<ReasoningRequest>({
      effort: reasoning.string("effort"),
      budgetTokens: reasoning.number("max_tokens"),
      enabled: reasoning.boolean("enabled"),
      summary: reasoning.string("summary"),
      exclude: reasoning.boolean("exclude"),
      extensions: reasoning.unknown("openai-responses", knownReasoningFields),
    }),
  );

function decodeOutput(format: RequestFields | undefined): OutputFormat | undefined {
  switch (format?.requiredString("type")) {
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema":
      return decodeSchemaOutput(format);
    default:
      return undefined;
  }
}

function decodeLogProbabilities(body: RequestFields): CanonicalRequest["logProbabilities"] {
  const top = body.number("top_logprobs");
  const wanted = body.strings("include")?.includes(includedProbabilities) === true;
  if (!wanted && !top) return undefined;
  return { ...(top !== undefined && { top }) };
}

/**
 * Returns unknown fields, further `include` entries, and a text format that only the client's own
 * dialect may know.
 */
function decodeExtensions(body: RequestFields): CanonicalRequest["extensions"] {
  const fields: Record<string, JsonObject[string]> = {
    ...body.unknown("openai-responses", responsesRequestFields)?.fields,
  };
  const include =
    body
      .strings("include")
      ?.filter((entry) => entry !== includedSeals && entry !== includedProbabilities) ?? [];
  if (include.length > 0) fields.include = include;
  const format = body.nested("text")?.nested("format");
  if (format !== undefined && decodeOutput(format) === undefined)
    fields.text = { format: format.object };
  return Object.keys(fields).length === 0 ? undefined : { dialect: "openai-responses", fields };
}
