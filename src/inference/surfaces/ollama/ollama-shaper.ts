import type { JsonObject } from "../../canonical/json.ts";
import {
  asArray,
  asNumber,
  asObject,
  asString,
  objectsIn,
} from "../../dialects/shared/wire-fields.ts";

/** The two forms of an answer: a message of a chat, or a text. */
export type OllamaForm = "chat" | "generate";

/** What an answer in Ollama's form says beside the chat's. */
interface OllamaAnswer {
  form: OllamaForm;
  /** The model as the client named it. */
  model: string;
  startedMs: number;
  /** Returns the milliseconds of the same clock. */
  nowMs(): number;
  /** Returns the present time as ISO 8601. */
  nowText(): string;
}

/** A call of a tool, whose arguments are text until it is whole. */
interface Call {
  id: string | undefined;
  name: string;
  arguments: string;
}

/** What a line says, or a whole answer. */
interface Said {
  content: string;
  thinking?: string | undefined;
  calls?: readonly Call[];
  logprobs?: readonly JsonObject[] | undefined;
}

/** Nanoseconds of a millisecond, in which Ollama counts durations. */
const nanosecondsPerMs = 1_000_000;

const doneReasons: Readonly<Record<string, string>> = { length: "length" };

/** Writes answers in Ollama's form: a whole one, or a line for each chunk of a stream. */
export class OllamaShaper {
  /** Clients read every line as JSON, so that there is no sign of life. */
  readonly pingFrame = "";
  private readonly calls = new Map<number, Call>();
  private firstMs: number | undefined;
  private finish: string | undefined;
  private usage: JsonObject = {};
  private cost: JsonObject = {};

  constructor(private readonly answer: OllamaAnswer) {}

  /** Returns the whole answer of a chat completion. */
  whole(completion: JsonObject): JsonObject {
    const [choice = {}] = objectsIn(completion.choices);
    const message = asObject(choice.message) ?? {};
    this.note(completion, asString(choice.finish_reason));
    const calls = objectsIn(message.tool_calls).map((call) => {
      const { name, arguments: text } = asObject(call.function) ?? {};
      return { id: asString(call.id), name: String(name), arguments: String(text ?? "") };
    });
    return this.last({
      content: asString(message.content) ?? "",
      thinking: thoughtOf(message),
      calls,
      logprobs: logprobsOf(choice),
    });
  }

  /** Returns the answer to a request that only loads a model, or unloads it. */
  loaded(reason: "load" | "unload"): JsonObject {
    return { ...this.head(), ...this.said({ content: "" }), done: true, done_reason: reason };
  }

  /** Returns the line of a chunk; an empty text for one that says nothing here. */
  chunk(chunk: JsonObject): string {
    const error = asObject(chunk.error);
    if (error !== undefined && chunk.choices === undefined) return line({ error: error.message });
    const [choice] = objectsIn(chunk.choices);
    this.note(chunk, asString(choice?.finish_reason));
    const delta = asObject(choice?.delta) ?? {};
    for (const call of objectsIn(delta.tool_calls)) this.noteCall(call);
    const content = asString(delta.content) ?? "";
    const thinking = thoughtOf(delta);
    if (content === "" && thinking === undefined) return "";
    this.firstMs ??= this.answer.nowMs();
    const said = this.said({ content, thinking, logprobs: choice && logprobsOf(choice) });
    return line({ ...this.head(), ...said, done: false });
  }

  done(): string {
    const calls = [...this.calls.values()];
    const called =
      calls.length === 0
        ? ""
        : line({ ...this.head(), ...this.said({ content: "", calls }), done: false });
    return called + line(this.last({ content: "" }));
  }

  private note(fields: JsonObject, finish: string | undefined): void {
    this.finish = finish ?? this.finish;
    this.usage = asObject(fields.usage) ?? this.usage;
    if (this.usage.cost !== undefined) this.cost = { cost: this.usage.cost };
  }

  private noteCall(call: JsonObject): void {
    const index = asNumber(call.index) ?? 0;
    const { name, arguments: text } = asObject(call.function) ?? {};
    const known = this.calls.get(index) ?? { id: undefined, name: "", arguments: "" };
    this.calls.set(index, {
      id: known.id ?? asString(call.id),
      name: known.name || (asString(name) ?? ""),
      arguments: known.arguments + (asString(text) ?? ""),
    });
  }

  private head(): JsonObject {
    return { model: this.answer.model, created_at: this.answer.nowText() };
  }

  private said({ content, thinking, calls = [], logprobs }: Said): JsonObject {
    const thought = thinking === undefined ? {} : { thinking };
    const scores = logprobs === undefined ? {} : { logprobs };
    if (this.answer.form === "generate") return { response: content, ...thought, ...scores };
    return {
      ...scores,
      message: {
        role: "assistant",
        content,
        ...thought,
        ...(calls.length > 0 && {
          tool_calls: calls.map((call) => ({
            ...(call.id !== undefined && { id: call.id }),
            function: { name: call.name, arguments: parsedObject(call.arguments) },
          })),
        }),
      },
    };
  }

  private last(said: Said): JsonObject {
    const { startedMs, nowMs } = this.answer;
    const endMs = nowMs();
    // The beginning of a whole answer is not known, and clients divide the tokens by the second time.
    const firstMs = this.firstMs ?? startedMs;
    const nanoseconds = (ms: number): number => Math.max(1, Math.round(ms * nanosecondsPerMs));
    return {
      ...this.head(),
      ...this.said(said),
      done: true,
      done_reason: doneReasons[this.finish ?? ""] ?? "stop",
      total_duration: nanoseconds(endMs - startedMs),
      load_duration: 1,
      prompt_eval_count: asNumber(this.usage.prompt_tokens) ?? 0,
      prompt_eval_duration: nanoseconds(firstMs - startedMs),
      eval_count: asNumber(this.usage.completion_tokens) ?? 0,
      eval_duration: nanoseconds(endMs - firstMs),
      ...this.cost,
    };
  }
}

const line = (fields: JsonObject): string => `${JSON.stringify(fields)}\n`;

/** Returns log probabilities of tokens, which have the same form here. */
function logprobsOf(choice: JsonObject): readonly JsonObject[] | undefined {
  const content = objectsIn(asObject(choice.logprobs)?.content);
  return content.length === 0 ? undefined : content;
}

const thoughtOf = ({ reasoning, reasoning_content: content }: JsonObject): string | undefined =>
  asString(reasoning) || asString(content) || undefined;

/** Returns the arguments of a call as an object, as Ollama's clients have them. */
function parsedObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text || "{}");
    return asArray(value) === undefined ? (asObject(value) ?? {}) : {};
  } catch {
    return {};
  }
}
