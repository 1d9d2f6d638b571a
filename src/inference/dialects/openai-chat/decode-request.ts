import type { ReasoningRequest } from "../../canonical/reasoning.ts";
import type {
  CanonicalRequest,
  OutputFormat,
  Sampling,
  WebSearchOptions,
} from "../../canonical/request.ts";
import {
  decodeSchemaOutput,
  decodeSharedFields,
  decodeSharedSampling,
  filled,
} from "../decode-openai-fields.ts";
import { asArray, RequestFields } from "../request-fields.ts";
import { joined, withoutUndefined } from "../without-undefined.ts";
import { decodeMessages } from "./decode-messages.ts";
import { decodeToolFields } from "./decode-tools.ts";
import { chatRequestFields } from "./request-schema.ts";
import { validateChatEnvelope } from "./validate-envelope.ts";

/** A chat completion request from the wire; see `ClientDialect.decodeRequest`. */
export function decodeRequest(value: unknown): CanonicalRequest {
  const body = new RequestFields(value, "");
  validateChatEnvelope(body.object);
  return joined<CanonicalRequest>(
    {
      dialect: "openai-chat",
      model: body.requiredString("model"),
      messages: decodeMessages(body),
      stream: body.boolean("stream") ?? false,
      streamOptions: decodeStreamOptions(body.nested("stream_options")),
    },
    decodeToolFields(body),
    {
      sampling: filled(decodeSampling(body)),
      choiceCount: body.number("n"),
      stop: decodeStop(body),
      maxOutputTokens: body.number("max_completion_tokens") ?? body.number("max_tokens"),
      reasoning: filled(decodeReasoningRequest(body)),
      output: decodeOutput(body.nested("response_format")),
      verbosity: body.string("verbosity"),
      logProbabilities: decodeLogProbabilities(body),
      audio: body.objectField("audio"),
      prediction: body.objectField("prediction"),
      webSearch: decodeWebSearch(body.nested("web_search_options")),
    },
    decodeSharedFields(body),
    { extensions: decodeExtensions(body) },
  );
}

const decodeStreamOptions = (
  options: RequestFields | undefined,
): CanonicalRequest["streamOptions"] =>
  options &&
  withoutUndefined<NonNullable<CanonicalRequest["streamOptions"]>>({
    includeUsage: options.boolean("include_usage"),
    includeObfuscation: options.boolean("include_obfuscation"),
  });

function decodeSampling(body: RequestFields): Sampling {
  const sampling = decodeSharedSampling(body);
  const logitBias = body.objectField("logit_bias");
  return logitBias === undefined
    ? sampling
    : { ...sampling, logitBias: logitBias as Readonly<Record<string, number>> };
}

function decodeStop(body: RequestFields): readonly string[] | undefined {
  const { stop } = body.object;
  if (typeof stop === "string") return [stop];
  const list = asArray(stop) as readonly string[] | undefined;
  return list?.length ? list : undefined;
}

/** Flat `reasoning_effort`, or OpenRouter's `reasoning` object; the flat one wins. */
function decodeReasoningRequest(body: RequestFields): ReasoningRequest {
  const nested = body.nested("reasoning");
  const flat = body.string("reasoning_effort");
  const enabled = nested?.boolean("enabled");
  return withoutUndefined<ReasoningRequest>({
    effort: flat ?? nested?.string("effort"),
    budgetTokens: nested?.number("max_tokens"),
    enabled: flat === undefined ? enabled : undefined,
    summary: nested?.string("summary"),
    exclude: nested?.boolean("exclude"),
  });
}

function decodeOutput(format: RequestFields | undefined): OutputFormat | undefined {
  switch (format?.requiredString("type")) {
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema":
      return decodeSchemaOutput(format?.nested("json_schema"));
    default:
      return undefined;
  }
}

function decodeLogProbabilities(body: RequestFields): CanonicalRequest["logProbabilities"] {
  if (body.boolean("logprobs") !== true) return undefined;
  const top = body.number("top_logprobs");
  return { ...(top !== undefined && { top }) };
}

const knownSearchFields = new Set(["search_context_size", "user_location"]);

function decodeWebSearch(options: RequestFields | undefined): WebSearchOptions | undefined {
  return (
    options &&
    withoutUndefined<WebSearchOptions>({
      contextSize: options.string("search_context_size"),
      userLocation: options.nested("user_location")?.objectField("approximate"),
      extensions: options.unknown("openai-chat", knownSearchFields),
    })
  );
}

/** Unknown fields, and a response format that only the client's own dialect may know. */
function decodeExtensions(body: RequestFields): CanonicalRequest["extensions"] {
  const unknown = body.unknown("openai-chat", chatRequestFields);
  const format = body.objectField("response_format");
  if (
    format === undefined ||
    decodeOutput(new RequestFields(format, "response_format")) !== undefined
  )
    return unknown;
  return { dialect: "openai-chat", fields: { ...unknown?.fields, response_format: format } };
}
