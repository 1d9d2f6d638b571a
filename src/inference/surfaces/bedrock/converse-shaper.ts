import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import { asNumber, asObject, asString, objectsIn } from "../../dialects/shared/wire-fields.ts";

/** An event of a stream of Bedrock's, or an exception that ends it. */
export interface BedrockEvent {
  type: string;
  isException: boolean;
  payload: JsonObject;
}

/** Turns the events of one Messages stream into those of a stream of Bedrock's. */
export interface BedrockShaper {
  /** Returns the events for one of Messages. */
  events(event: JsonObject): BedrockEvent[];
}

const stopReasons: Readonly<Record<string, string>> = {
  end_turn: "end_turn",
  pause_turn: "end_turn",
  tool_use: "tool_use",
  max_tokens: "max_tokens",
  stop_sequence: "stop_sequence",
  refusal: "content_filtered",
  model_context_window_exceeded: "model_context_window_exceeded",
};

const stopReasonOf = (value: JsonValue | undefined): string =>
  stopReasons[asString(value) ?? ""] ?? "end_turn";

/** Returns the tokens in Converse's names, with the charge that Messages has. */
function usageOf(usage: JsonObject): JsonObject {
  const count = (name: string): number => asNumber(usage[name]) ?? 0;
  const [read, written] = [count("cache_read_input_tokens"), count("cache_creation_input_tokens")];
  const [inputTokens, outputTokens] = [count("input_tokens"), count("output_tokens")];
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens + read + written,
    ...(read > 0 && { cacheReadInputTokens: read }),
    ...(written > 0 && { cacheWriteInputTokens: written }),
    ...(usage.cost !== undefined && { cost: usage.cost }),
  };
}

/** Returns a block of a message; undefined for one that Converse does not know. */
function blockOf(block: JsonObject): JsonObject | undefined {
  switch (block.type) {
    case "text":
      return { text: block.text ?? "" };
    case "tool_use":
      return { toolUse: { toolUseId: block.id, name: block.name, input: block.input ?? {} } };
    case "thinking":
      return {
        reasoningContent: { reasoningText: { text: block.thinking, signature: block.signature } },
      };
    case "redacted_thinking":
      return { reasoningContent: { redactedContent: block.data } };
    default:
      return undefined;
  }
}

/** Returns the answer of Converse for a message. */
export const converseOfMessage = (message: JsonObject, latencyMs: number): JsonObject => ({
  output: {
    message: {
      role: "assistant",
      content: objectsIn(message.content)
        .map(blockOf)
        .filter((block) => block !== undefined),
    },
  },
  stopReason: stopReasonOf(message.stop_reason),
  usage: usageOf(asObject(message.usage) ?? {}),
  metrics: { latencyMs },
});

/** Names of exceptions in a stream, by Anthropic's types of errors. */
const exceptions: Readonly<Record<string, string>> = {
  invalid_request_error: "validationException",
  rate_limit_error: "throttlingException",
  overloaded_error: "serviceUnavailableException",
  api_error: "internalServerException",
};

/** Returns the exception for an error event of Messages. */
export function exceptionOf(event: JsonObject): BedrockEvent {
  const { type, message } = asObject(event.error) ?? {};
  const name = exceptions[asString(type) ?? ""] ?? "modelStreamErrorException";
  return { type: name, isException: true, payload: { message: message ?? "" } };
}

/** Turns the events of one Messages stream into those of Converse. */
export class ConverseShaper implements BedrockShaper {
  private usage: JsonObject = {};
  private stopReason: JsonValue | undefined;

  /** `latencyMs` returns the milliseconds since the request came. */
  constructor(private readonly latencyMs: () => number) {}

  events(event: JsonObject): BedrockEvent[] {
    const contentBlockIndex = event.index;
    switch (event.type) {
      case "message_start":
        this.usage = asObject(asObject(event.message)?.usage) ?? {};
        return [eventOf("messageStart", { role: "assistant" })];
      case "content_block_start": {
        const block = asObject(event.content_block) ?? {};
        if (block.type === "redacted_thinking")
          return [
            eventOf("contentBlockDelta", {
              delta: { reasoningContent: { redactedContent: block.data } },
              contentBlockIndex,
            }),
          ];
        if (block.type !== "tool_use") return [];
        const start = { toolUse: { toolUseId: block.id, name: block.name } };
        return [eventOf("contentBlockStart", { start, contentBlockIndex })];
      }
      case "content_block_delta": {
        const delta = deltaOf(asObject(event.delta) ?? {});
        return delta === undefined
          ? []
          : [eventOf("contentBlockDelta", { delta, contentBlockIndex })];
      }
      case "content_block_stop":
        return [eventOf("contentBlockStop", { contentBlockIndex })];
      case "message_delta":
        this.usage = { ...this.usage, ...asObject(event.usage) };
        this.stopReason = asObject(event.delta)?.stop_reason ?? this.stopReason;
        return [];
      case "message_stop":
        return [
          eventOf("messageStop", { stopReason: stopReasonOf(this.stopReason) }),
          eventOf("metadata", {
            usage: usageOf(this.usage),
            metrics: { latencyMs: this.latencyMs() },
          }),
        ];
      case "error":
        return [exceptionOf(event)];
      default:
        return [];
    }
  }
}

const eventOf = (type: string, payload: JsonObject): BedrockEvent => ({
  type,
  isException: false,
  payload,
});

function deltaOf(delta: JsonObject): JsonObject | undefined {
  switch (delta.type) {
    case "text_delta":
      return { text: delta.text };
    case "input_json_delta":
      return delta.partial_json === "" ? undefined : { toolUse: { input: delta.partial_json } };
    case "thinking_delta":
      return { reasoningContent: { text: delta.thinking } };
    case "signature_delta":
      return { reasoningContent: { signature: delta.signature } };
    default:
      return undefined;
  }
}
