import { chatClient } from "./chat-client.ts";
import type { ClientDialect, Meaning, ReadStream, SeenError } from "./client-dialect.ts";
import { fieldsOf, listOf, numberOf, textOf, wordOf, type Fields } from "./json-value.ts";
import type { WireEvent } from "./wire-events.ts";

const joined = (parts: readonly Fields[], type: string, key: string): string =>
  parts
    .filter((part) => part.type === type)
    .map((part) => textOf(part[key]))
    .join("");

function finishOf(body: Fields, hasCalls: boolean): string | undefined {
  const { reason } = fieldsOf(body.incomplete_details);
  if (body.status === "completed") return hasCalls ? "tool_calls" : "stop";
  if (body.status !== "incomplete") return undefined;
  return reason === "max_output_tokens" ? "length" : textOf(reason);
}

function mean(body: Fields): Meaning {
  const items = listOf(body.output);
  const parts = items
    .filter(({ type }) => type === "message")
    .flatMap(({ content }) => listOf(content));
  const thoughts = items.filter(({ type }) => type === "reasoning");
  const calls = items.filter(({ type }) => type === "function_call" || type === "custom_tool_call");
  const usage = fieldsOf(body.usage);
  const { cached_tokens: cached, cache_write_tokens: written } = fieldsOf(
    usage.input_tokens_details,
  );
  const { reasoning_tokens: reasoning } = fieldsOf(usage.output_tokens_details);
  return {
    id: textOf(body.id),
    said: joined(parts, "output_text", "text"),
    refused: joined(parts, "refusal", "refusal"),
    thought: thoughts
      .flatMap(({ summary, content }) => [...listOf(summary), ...listOf(content)])
      .map(({ text }) => textOf(text))
      .join(""),
    seals: thoughts.map((item) => textOf(item.encrypted_content)).filter((seal) => seal !== ""),
    calls: calls.map((item) => ({
      id: textOf(item.call_id),
      name: textOf(item.name),
      arguments: textOf(item.arguments ?? item.input),
    })),
    finish: finishOf(body, calls.length > 0),
    usage:
      typeof usage.input_tokens === "number"
        ? {
            input: usage.input_tokens,
            output: numberOf(usage.output_tokens),
            ...(typeof cached === "number" && { cached }),
            ...(typeof written === "number" && { written }),
            ...(typeof reasoning === "number" && { reasoning }),
          }
        : undefined,
    costUsd: usage.cost,
  };
}

/** Where a stream puts what it adds to an item, by the event's type without `response.`. */
type Part = "output_text" | "refusal" | "summary" | "reasoning_text" | "arguments" | "input";
const deltas = new Map<string, Part>([
  ["output_text.delta", "output_text"],
  ["refusal.delta", "refusal"],
  ["reasoning_summary_text.delta", "summary"],
  ["reasoning_text.delta", "reasoning_text"],
  ["function_call_arguments.delta", "arguments"],
  ["custom_tool_call_input.delta", "input"],
]);
const dones = new Map<string, readonly [part: Part, key: string]>([
  ["output_text.done", ["output_text", "text"]],
  ["refusal.done", ["refusal", "refusal"]],
  ["reasoning_summary_text.done", ["summary", "text"]],
  ["reasoning_text.done", ["reasoning_text", "text"]],
  ["function_call_arguments.done", ["arguments", "arguments"]],
  ["custom_tool_call_input.done", ["input", "input"]],
]);

interface OpenItem {
  id: unknown;
  /** What the deltas said so far, by part and its index. */
  told: Map<string, string>;
  open: Set<string>;
  done: Fields | undefined;
}

/** Follows the events of a response and notes where they break OpenAI's order. */
class ResponseReader {
  body: Fields = {};
  endings = 0;
  metadata: unknown;
  readonly errors: SeenError[] = [];
  readonly failures: Fields[] = [];
  readonly breaches: string[] = [];
  private readonly items: OpenItem[] = [];
  private sequence = 0;
  private ended = false;
  private responseId: unknown;

  read({ name, id, data }: WireEvent): void {
    const type = textOf(data.type);
    if (name !== type) this.breaches.push(`the event ${wordOf(name)} is of the type ${type}`);
    if (id !== undefined) this.breaches.push("an event has an id");
    const { sequence_number: number } = data;
    if (number !== this.sequence)
      this.breaches.push(`${type} has the number ${wordOf(number)}, not ${this.sequence}`);
    this.sequence += 1;
    if (type === "response.service.metadata") this.metadata = data.service_metadata;
    else if (this.ended) this.breaches.push(`${type} after the end`);
    else if (type === "error") this.errors.push(...[chatClient.errorOf(data) ?? []].flat());
    else if (data.response !== undefined) this.readRecord(type, fieldsOf(data.response));
    else this.readItem(type.slice("response.".length), data);
  }

  private readRecord(type: string, response: Fields): void {
    this.responseId ??= response.id;
    if (response.id !== this.responseId) this.breaches.push("the response's id changes");
    this.body = response;
    switch (type) {
      case "response.created":
      case "response.in_progress":
        return;
      case "response.failed":
        this.failures.push(fieldsOf(response.error));
        break;
      case "response.completed":
      case "response.incomplete":
        this.complete(response);
        break;
      default:
        this.breaches.push(`nobody knows ${type}`);
        return;
    }
    this.ended = true;
  }

  private complete({ output }: Fields): void {
    this.endings += 1;
    const whole = this.items.map(({ done }) => done);
    if (whole.includes(undefined)) this.breaches.push("the response ends while an item is open");
    if (JSON.stringify(whole) !== JSON.stringify(output))
      this.breaches.push("the last event has other items than those that were told");
  }

  private readItem(type: string, data: Fields): void {
    const index = numberOf(data.output_index);
    const item = fieldsOf(data.item);
    if (type === "output_item.added") {
      if (index !== this.items.length) this.breaches.push(`item ${index} comes out of order`);
      this.items.push({ id: item.id, told: new Map(), open: new Set(), done: undefined });
      return;
    }
    const known = this.items[index];
    if (known === undefined || known.done !== undefined)
      this.breaches.push(`${type} for item ${index}, which is not open`);
    else if (type === "output_item.done") this.closeItem(known, item);
    else this.readPart(type, { known, data });
  }

  private closeItem(known: OpenItem, item: Fields): void {
    if (item.id !== known.id) this.breaches.push("an item's id changes");
    if (known.open.size > 0)
      this.breaches.push(`the item ${wordOf(item.id)} ends while a part is open`);
    known.done = item;
    const told = [...known.told.values()].join("");
    const {
      said,
      refused,
      thought,
      calls: [call],
    } = mean({ output: [item] });
    const whole = said + refused + thought + (call?.arguments ?? "");
    if (told !== whole)
      this.breaches.push(`the item ${wordOf(item.id)} says ${whole}, its deltas ${told}`);
  }

  private readPart(type: string, { known, data }: { known: OpenItem; data: Fields }): void {
    if (data.item_id !== known.id)
      this.breaches.push(`${type} names the item ${wordOf(data.item_id)}, not ${wordOf(known.id)}`);
    const place = `${wordOf(data.content_index ?? "")}/${wordOf(data.summary_index ?? "")}`;
    const [part, key] = dones.get(type) ?? [];
    const delta = deltas.get(type);
    if (type.endsWith("part.added")) known.open.add(place);
    else if (type.endsWith("part.done")) {
      if (!known.open.delete(place)) this.breaches.push(`${type} for a part that is not open`);
    } else if (delta !== undefined) this.grow(known, { delta, place, text: textOf(data.delta) });
    else if (part !== undefined && key !== undefined) {
      const told = known.told.get(`${part} ${place}`) ?? "";
      if (told !== data[key])
        this.breaches.push(`${type} says ${wordOf(data[key])}, its deltas ${told}`);
    } else if (!/^(?:output_text\.annotation\.added|web_search_call\.)/.test(type))
      this.breaches.push(`nobody knows response.${type}`);
  }

  private grow(
    known: OpenItem,
    { delta, place, text }: { delta: Part; place: string; text: string },
  ): void {
    const needsPart = delta !== "arguments" && delta !== "input" && delta !== "reasoning_text";
    if (needsPart && !known.open.has(place))
      this.breaches.push(`a delta of ${delta} for a part that is not open`);
    const at = `${delta} ${place}`;
    known.told.set(at, (known.told.get(at) ?? "") + text);
  }
}

function readStream(events: readonly WireEvent[]): ReadStream {
  const reader = new ResponseReader();
  for (const event of events) reader.read(event);
  const { body, errors, failures, endings, metadata } = reader;
  const alone =
    errors.length === failures.length ? [] : ["error and response.failed do not come together"];
  return { body, errors, endings, breaches: [...reader.breaches, ...alone], metadata };
}

/** OpenAI's Responses. */
export const responsesClient: ClientDialect<"openai-responses"> = {
  name: "openai-responses",
  path: "/responses",
  ask: (text) => ({ input: text, max_output_tokens: 300, store: false }),
  capped: (tokens) => ({ max_output_tokens: tokens }),
  mean,
  errorOf: ({ error, status }) =>
    status === undefined || status === "failed" ? chatClient.errorOf({ error }) : undefined,
  envelopeBreaches: chatClient.envelopeBreaches,
  readStream,
};
