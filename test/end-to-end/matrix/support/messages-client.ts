import type { ClientDialect, Meaning, ReadStream, SeenError } from "./client-dialect.ts";
import { fieldsOf, listOf, numberOf, parsed, textOf, wordOf, type Fields } from "./json-value.ts";
import type { WireEvent } from "./wire-events.ts";

const finishWords: Readonly<Record<string, string>> = {
  end_turn: "stop",
  max_tokens: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
};

function mean(body: Fields): Meaning {
  const blocks = listOf(body.content);
  const joined = (type: string, key: string): string =>
    blocks
      .filter((block) => block.type === type)
      .map((block) => textOf(block[key]))
      .join("");
  const usage = fieldsOf(body.usage);
  const {
    input_tokens: input,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: written,
  } = usage;
  const { thinking_tokens: reasoning } = fieldsOf(usage.output_tokens_details);
  return {
    id: textOf(body.id),
    said: joined("text", "text"),
    refused: textOf(fieldsOf(body.stop_details).explanation),
    thought: joined("thinking", "thinking"),
    seals: blocks
      .map(({ signature, data }) => textOf(signature ?? data))
      .filter((seal) => seal !== ""),
    calls: blocks
      .filter(({ type }) => type === "tool_use")
      .map(({ id, name, input: given }) => ({
        id: textOf(id),
        name: textOf(name),
        arguments: JSON.stringify(given),
      })),
    finish:
      typeof body.stop_reason === "string"
        ? (finishWords[body.stop_reason] ?? body.stop_reason)
        : undefined,
    usage:
      typeof input === "number"
        ? {
            input: input + numberOf(cached ?? 0) + numberOf(written ?? 0),
            output: numberOf(usage.output_tokens),
            ...(typeof cached === "number" && { cached }),
            ...(typeof written === "number" && { written }),
            ...(typeof reasoning === "number" && { reasoning }),
          }
        : undefined,
    costUsd: usage.cost,
  };
}

const errorOf = (body: Fields): SeenError | undefined => {
  if (body.type !== "error") return undefined;
  const { code, message, metadata } = fieldsOf(body.error);
  return { code, message, metadata: fieldsOf(metadata) };
};

const errorTypes = [
  "invalid_request_error",
  "authentication_error",
  "billing_error",
  "permission_error",
  "not_found_error",
  "conflict_error",
  "request_too_large",
  "rate_limit_error",
  "api_error",
  "timeout_error",
  "overloaded_error",
];

const deltaFields = new Map<unknown, readonly [blockType: string, key: string]>([
  ["text_delta", ["text", "text"]],
  ["thinking_delta", ["thinking", "thinking"]],
  ["input_json_delta", ["tool_use", "input"]],
  ["signature_delta", ["thinking", "signature"]],
]);

/** Adds up the events of a message and notes where they break Anthropic's order. */
class MessageReader {
  message: Record<string, unknown> = {};
  endings = 0;
  metadata: unknown;
  readonly errors: SeenError[] = [];
  readonly breaches: string[] = [];
  private readonly blocks: Record<string, unknown>[] = [];
  private open: Record<string, unknown> | undefined;
  private json = "";
  private phase: "before" | "blocks" | "delta" | "ended" = "before";

  read({ name, id, data }: WireEvent): void {
    const { type } = data;
    if (name !== type)
      this.breaches.push(`the event ${wordOf(name)} is of the type ${wordOf(type)}`);
    if (id !== undefined) this.breaches.push("an event has an id");
    if (this.phase === "ended") this.breaches.push(`${wordOf(type)} after the end`);
    switch (type) {
      case "ping":
        break;
      case "message_start":
        this.start(data);
        break;
      case "content_block_start":
        this.startBlock(data);
        break;
      case "content_block_delta":
        this.fillBlock(data);
        break;
      case "content_block_stop":
        this.stopBlock(data);
        break;
      case "message_delta":
        this.finish(data);
        break;
      case "message_stop":
        this.stop(data);
        break;
      case "error":
        this.errors.push(...[errorOf(data) ?? []].flat());
        this.phase = "ended";
        break;
      default:
        this.breaches.push(`nobody knows ${wordOf(type)}`);
    }
  }

  private start({ message }: Fields): void {
    if (this.phase !== "before") this.breaches.push("message_start comes twice");
    this.phase = "blocks";
    this.message = { ...fieldsOf(message), content: this.blocks };
    if (typeof fieldsOf(fieldsOf(message).usage).input_tokens !== "number")
      this.breaches.push("message_start without usage");
  }

  private startBlock({ index, content_block: block }: Fields): void {
    if (this.phase !== "blocks") this.breaches.push(`a block while the message is ${this.phase}`);
    if (this.open !== undefined) this.breaches.push("two blocks are open");
    if (index !== this.blocks.length)
      this.breaches.push(`block ${wordOf(index)} comes out of order`);
    this.open = { ...fieldsOf(block) };
    this.json = "";
    this.blocks.push(this.open);
  }

  private fillBlock({ index, delta }: Fields): void {
    const { open } = this;
    const told = fieldsOf(delta);
    const [type, key] = deltaFields.get(told.type) ?? [];
    // The input of a search that a provider runs comes as that of a call.
    const openType = open?.type === "server_tool_use" ? "tool_use" : open?.type;
    if (open === undefined || index !== this.blocks.length - 1) {
      this.breaches.push(`a delta for block ${wordOf(index)}, which is not open`);
    } else if (told.type === "citations_delta") {
      open.citations = [...listOf(open.citations), told.citation];
    } else if (key === undefined || openType !== type) {
      this.breaches.push(`${wordOf(told.type)} in a block of ${wordOf(open.type)}`);
    } else if (key === "input") {
      this.json += textOf(told.partial_json);
    } else {
      open[key] = key === "signature" ? told.signature : textOf(open[key]) + textOf(told[key]);
    }
  }

  private stopBlock({ index }: Fields): void {
    if (this.open === undefined || index !== this.blocks.length - 1)
      this.breaches.push(`block ${wordOf(index)} ends without being open`);
    if (this.open !== undefined && this.json !== "") this.open.input = parsed(this.json);
    if (this.open?.type === "text" && this.open.text === "")
      this.breaches.push("an empty block of text");
    this.open = undefined;
  }

  private finish({ delta, usage }: Fields): void {
    if (this.open !== undefined) this.breaches.push("message_delta while a block is open");
    if (this.phase !== "blocks")
      this.breaches.push(`message_delta while the message is ${this.phase}`);
    if (typeof fieldsOf(usage).output_tokens !== "number")
      this.breaches.push("message_delta without usage");
    this.phase = "delta";
    // Counts that the start alone reports stay as they are.
    Object.assign(this.message, delta, {
      usage: { ...fieldsOf(this.message.usage), ...fieldsOf(usage) },
    });
  }

  private stop({ service_metadata: metadata }: Fields): void {
    if (this.phase !== "delta") this.breaches.push("message_stop without message_delta");
    this.phase = "ended";
    this.endings += 1;
    this.metadata = metadata;
  }
}

function readStream(events: readonly WireEvent[]): ReadStream {
  const reader = new MessageReader();
  for (const event of events) reader.read(event);
  const { message: body, errors, endings, breaches, metadata } = reader;
  return { body, errors, endings, breaches, metadata };
}

/** Anthropic's Messages. */
export const messagesClient: ClientDialect<"anthropic-messages"> = {
  name: "anthropic-messages",
  path: "/messages",
  ask: (text) => ({ messages: [{ role: "user", content: text }], max_tokens: 300 }),
  capped: (tokens) => ({ max_tokens: tokens }),
  mean,
  errorOf,
  envelopeBreaches: ({ type, error, request_id: id }) => [
    ...(type === "error" ? [] : ["the envelope is no error"]),
    ...(errorTypes.includes(textOf(fieldsOf(error).type))
      ? []
      : [`nobody knows errors of the type ${wordOf(fieldsOf(error).type)}`]),
    ...(typeof fieldsOf(error).message === "string" ? [] : ["the error has no message"]),
    ...(typeof id === "string" ? [] : ["the error has no request_id"]),
  ],
  readStream,
};
