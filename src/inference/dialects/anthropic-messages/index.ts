import type { ClientDialect, DecodeContext, ResponseContext, UpstreamDialect } from "../dialect.ts";
import { maxTokensDefault } from "../shared/reasoning-rules.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeResponse } from "./decode-response.ts";
import { MessagesStreamDecoder } from "./decode-stream.ts";
import { encodeError, encodeStreamError, readError } from "./errors.ts";
import { encodeRequest } from "./encode-request.ts";
import { createLossDetector, encodeResponse } from "./encode-response.ts";
import { MessagesStreamEncoder } from "./encode-stream.ts";
import { pingFrame } from "./answer-fields.ts";
import { passThrough, providerHeaders, versionDefault } from "./passthrough/passthrough.ts";
import { withoutSeals } from "./passthrough/refused-seals.ts";
import { presetFields } from "./preset-fields.ts";
import { requirements } from "./requirements.ts";

/** Bytes of text per token, as an average of common tokenizers. */
const bytesPerToken = 4;
/**
 * The cost of a picture at Anthropic's own resolution (1.15 megapixels at 750 pixels per token).
 */
const tokensPerImage = 1_600;
/**
 * The cost of a PDF page, which is read as text and as a picture. The bytes show roughly how many
 * pages there are.
 */
const tokensPerPage = 2_000;
const bytesPerPage = 75_000;
/** Overhead of a message, of a tool, and of the instructions for calling tools. */
const tokensPerMessage = 4;
const tokensPerTool = 8;
const tokensOfToolUse = 300;

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {};
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const textTokens = (value: unknown): number =>
  typeof value === "string" ? Buffer.byteLength(value) / bytesPerToken : 0;
const jsonTokens = (value: unknown): number =>
  value === undefined ? 0 : textTokens(JSON.stringify(value));

/**
 * Estimates the input tokens of a Messages body, including its tools, system and pictures, for
 * upstreams that do not count. It is within a few tens of a percent for prose, and is never
 * charged.
 */
export function estimateMessagesInput(body: Fields): number {
  const messages = listOf(body["messages"]);
  const tools = listOf(body["tools"]);
  const said = messages.reduce<number>(
    (sum, message) => sum + tokensPerMessage + contentTokens(fieldsOf(message)["content"]),
    0,
  );
  const offered = tools.reduce<number>(
    (sum, tool) => sum + tokensPerTool + jsonTokens(tool),
    tools.length > 0 ? tokensOfToolUse : 0,
  );
  return Math.ceil(
    contentTokens(body["system"]) +
      said +
      offered +
      jsonTokens(fieldsOf(body["output_config"])["format"]),
  );
}

function contentTokens(content: unknown): number {
  if (!Array.isArray(content)) return textTokens(content);
  return content.reduce<number>((sum, block) => sum + blockTokens(fieldsOf(block)), 0);
}

function blockTokens(block: Fields): number {
  switch (block["type"]) {
    case "text":
      return textTokens(block["text"]);
    case "image":
      return tokensPerImage;
    case "document":
      return documentTokens(block);
    case "search_result":
      return (
        contentTokens(block["content"]) + textTokens(block["title"]) + textTokens(block["source"])
      );
    case "tool_use":
      return textTokens(block["name"]) + jsonTokens(block["input"]);
    case "tool_result":
      return tokensPerTool + contentTokens(block["content"]);
    // Anthropic removes earlier reasoning from the prompt before it counts.
    case "thinking":
    case "redacted_thinking":
      return 0;
    default:
      return jsonTokens(block);
  }
}

function documentTokens(block: Fields): number {
  const source = fieldsOf(block["source"]);
  const beside = textTokens(block["title"]) + textTokens(block["context"]);
  switch (source["type"]) {
    case "text":
      return beside + textTokens(source["data"]);
    case "content":
      return beside + contentTokens(source["content"]);
    case "base64": {
      const bytes = typeof source["data"] === "string" ? source["data"].length * 0.75 : 0;
      return beside + tokensPerPage * Math.max(1, Math.round(bytes / bytesPerPage));
    }
    default:
      return beside + tokensPerPage;
  }
}

/** Reads the count of an upstream's answer; undefined where it answers something else. */
function readCountedInput(text: string): number | undefined {
  const count = /"input_tokens"\s*:\s*(\d{1,12})/.exec(text)?.[1];
  return count === undefined ? undefined : Number(count);
}

/**
 * Anthropic's Messages, in the versions of 2023-06-01 and 2026-10-21 (@anthropic-ai/sdk 1.11,
 * 2026-11).
 */
export const anthropicMessages = {
  id: "anthropic-messages",
  recordedAs: "messages",
  capField: "max_tokens",
  refusesBrokenAnswers: true,
  providerHeaders,
  decodeRequest,
  encodeResponse,
  createStreamEncoder: (context?: ResponseContext) => new MessagesStreamEncoder(context),
  createLossDetector,
  pingFrame,
  endsInText: true,
  encodeError,
  encodeStreamError,
  passThrough,
  presetFields,
  requirements,
  exceptionForm: "messages-error",
  userInMetadata: true,
  thinkingBudget: true,
  hidesReasoning: true,
  thinksWhenAsked: true,
  capRule: { statedTokens: maxTokensDefault },
  inputCount: { estimate: estimateMessagesInput, read: readCountedInput },
  requestHeaders: { "anthropic-version": versionDefault },
  encodeRequest,
  decodeResponse,
  createStreamDecoder: (context?: DecodeContext) => new MessagesStreamDecoder(context),
  withoutSeals,
  readError,
} satisfies ClientDialect & UpstreamDialect;
