import type { ClientDialect, Meaning, ReadStream, SeenError } from "./client-dialect.ts";
import { fieldsOf, listOf, numberOf, textOf, wordOf, type Fields } from "./json-value.ts";
import type { WireEvent } from "./wire-events.ts";

const errorOf = (body: Fields): SeenError | undefined => {
  const { error } = body;
  if (typeof error !== "object" || error === null) return undefined;
  const { code, message, metadata } = fieldsOf(error);
  return { code, message, metadata: fieldsOf(metadata) };
};

function mean(body: Fields): Meaning {
  const choice = fieldsOf(listOf(body.choices)[0]);
  const message = fieldsOf(choice.message);
  const usage = fieldsOf(body.usage);
  const details = fieldsOf(usage.prompt_tokens_details);
  const { reasoning_tokens: reasoning } = fieldsOf(usage.completion_tokens_details);
  const count = (key: string, value: unknown) =>
    typeof value === "number" ? { [key]: value } : {};
  return {
    id: textOf(body.id),
    said: textOf(message.content),
    refused: textOf(message.refusal),
    thought: textOf(message.reasoning_content),
    seals: listOf(message.reasoning_details)
      .map(({ signature, data }) => textOf(signature ?? data))
      .filter((seal) => seal !== ""),
    calls: listOf(message.tool_calls).map(({ id, function: made, custom }) => {
      const { name, arguments: text, input } = fieldsOf(made ?? custom);
      return { id: textOf(id), name: textOf(name), arguments: textOf(text ?? input) };
    }),
    finish:
      choice.stop_reason === undefined
        ? textOf(choice.finish_reason) || undefined
        : "stop_sequence",
    usage:
      typeof usage.prompt_tokens === "number"
        ? {
            input: usage.prompt_tokens,
            output: numberOf(usage.completion_tokens),
            ...count("cached", details.cached_tokens),
            ...count("written", details.cache_write_tokens),
            ...count("reasoning", reasoning),
          }
        : undefined,
    costUsd: usage.cost,
  };
}

/** Adds a delta to a message: texts grow, calls and thoughts by their index. */
function grow(message: Record<string, unknown>, delta: Fields): void {
  for (const [key, value] of Object.entries(delta)) {
    if (key === "tool_calls" || key === "reasoning_details")
      growList(message, { key, deltas: listOf(value) });
    else if (typeof value === "string" && key !== "role")
      message[key] = textOf(message[key]) + value;
    else if (Array.isArray(value)) message[key] = [...listOf(message[key]), ...value];
    else if (value !== null || message[key] === undefined) message[key] = value;
  }
}

const grownFields = ["text", "summary", "data"];

function growList(
  message: Record<string, unknown>,
  { key, deltas }: { key: string; deltas: readonly Fields[] },
): void {
  const list = listOf(message[key]) as Record<string, unknown>[];
  message[key] = list;
  for (const delta of deltas) {
    // A summary and its ciphertext have one index and two types.
    const known = list.find(
      ({ index, type }) =>
        index === delta.index && (delta.type === undefined || type === delta.type),
    );
    const entry: Record<string, unknown> = known ?? {};
    if (known === undefined) list.push(entry);
    for (const [field, value] of Object.entries(delta)) {
      if (typeof value === "object" && value !== null && !Array.isArray(value)) {
        const inner = { ...fieldsOf(entry[field]) };
        for (const [name, text] of Object.entries(value))
          inner[name] = name === "name" ? text : textOf(inner[name]) + textOf(text);
        entry[field] = inner;
      } else {
        entry[field] = grownFields.includes(field) ? textOf(entry[field]) + textOf(value) : value;
      }
    }
  }
}

/**
 * What OpenAI's clients rely on: constant ids, the role first, calls that are announced, one
 * finish, usage last.
 */
function breachesOf(chunks: readonly Fields[]): string[] {
  const breaches: string[] = [];
  const told = chunks.filter((chunk) => Array.isArray(chunk.choices));
  for (const key of ["id", "model", "created", "object"]) {
    if (new Set(told.map((chunk) => chunk[key])).size > 1) breaches.push(`${key} changes`);
  }
  const states = new Map<unknown, Progress>();
  for (const { choices, usage } of told) {
    const finished = [...states.values()].every((state) => state.finished);
    if (listOf(choices).length === 0 && !finished && usage !== undefined && usage !== null)
      breaches.push("usage before the finish");
    for (const choice of listOf(choices)) {
      const state = states.get(choice.index) ?? { begun: false, finished: false, calls: new Set() };
      states.set(choice.index, state);
      breaches.push(...breachesOfChoice(choice, state));
    }
  }
  return breaches;
}

interface Progress {
  begun: boolean;
  finished: boolean;
  calls: Set<unknown>;
}

function breachesOfChoice({ delta, finish_reason: finish }: Fields, state: Progress): string[] {
  const breaches: string[] = [];
  const told = fieldsOf(delta);
  if (!state.begun && told.role !== "assistant") breaches.push("no role on the first chunk");
  state.begun = true;
  if (state.finished) breaches.push("a choice after its finish");
  for (const { index, id, function: made, custom } of listOf(told.tool_calls)) {
    const announces = typeof id === "string" && fieldsOf(made ?? custom).name !== undefined;
    if (state.calls.has(index) && id !== undefined)
      breaches.push(`call ${wordOf(index)} is announced twice`);
    if (!state.calls.has(index) && !announces)
      breaches.push(`call ${wordOf(index)} was not announced`);
    if (!state.calls.has(index) && index !== state.calls.size)
      breaches.push(`call ${wordOf(index)} comes out of order`);
    state.calls.add(index);
  }
  if (finish !== null && finish !== undefined) state.finished = true;
  return breaches;
}

function readStream(events: readonly WireEvent[]): ReadStream {
  const chunks = events.filter(({ text }) => text !== "[DONE]").map(({ data }) => data);
  const body: Record<string, unknown> = {};
  const message: Record<string, unknown> = {};
  const choice: Record<string, unknown> = { index: 0, message };
  for (const { choices, error, service_metadata: _, ...head } of chunks) {
    if (error !== undefined) continue;
    Object.assign(body, head);
    for (const { delta, index: _index, ...others } of listOf(choices)) {
      grow(message, fieldsOf(delta));
      for (const [key, value] of Object.entries(others)) if (value !== null) choice[key] = value;
    }
  }
  if (message.content === "") message.content = null;
  const done = events.filter(({ text }) => text === "[DONE]").length;
  const named = events.filter(({ name, id }) => name !== undefined || id !== undefined);
  const last = events.findIndex(({ text }) => text === "[DONE]");
  return {
    body: { ...body, choices: Object.keys(message).length === 0 ? [] : [choice] },
    errors: chunks.flatMap((chunk) => errorOf(chunk) ?? []),
    endings: done,
    breaches: [
      ...breachesOf(chunks.filter(({ error }) => error === undefined)),
      ...named.map(({ text }) => `an event has a name or an id: ${text}`),
      ...(last >= 0 && last < events.length - 1 ? ["something follows [DONE]"] : []),
      ...chunks
        .filter(({ error, choices }) => error !== undefined && choices !== undefined)
        .map(() => "an error with choices"),
    ],
    metadata: chunks.findLast((chunk) => chunk.service_metadata !== undefined)?.service_metadata,
  };
}

/** OpenAI's chat completions. */
export const chatClient: ClientDialect<"openai-chat"> = {
  name: "openai-chat",
  path: "/chat/completions",
  ask: (text) => ({ messages: [{ role: "user", content: text }], max_tokens: 300 }),
  capped: (tokens) => ({ max_tokens: tokens }),
  mean,
  errorOf,
  envelopeBreaches({ error }) {
    const keys = ["message", "type", "param", "code"];
    return keys.filter((key) => !(key in fieldsOf(error))).map((key) => `the error has no ${key}`);
  },
  readStream,
};
