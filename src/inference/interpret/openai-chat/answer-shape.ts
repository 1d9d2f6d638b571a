import { editMembers } from "../../../platform/lib/json-members.ts";
import { reconcileFinish } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import {
  decodeFinish,
  encodeFinish,
  hasFinished,
} from "../../dialects/openai-chat/finish-fields.ts";
import { reasoningFields } from "../../dialects/openai-chat/reasoning-fields.ts";
import type { ClientRequest } from "../interpretation.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What the request says of the answer's shape. */
export interface AnswerShape {
  /** The client calls functions by the older field, whose finish reason is `function_call`. */
  legacyFunctions: boolean;
  /** The client asked not to see thoughts (`reasoning.exclude`). */
  hidesReasoning: boolean;
}

/** What a chat request says of the shape of its answer. */
export const answerShapeOf = ({ body }: Pick<ClientRequest, "body">): AnswerShape => ({
  legacyFunctions:
    Array.isArray(body["functions"]) || (body["function_call"] ?? undefined) !== undefined,
  hidesReasoning: fieldsOf(body["reasoning"])?.exclude === true,
});

const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : undefined;

/** The value as Unix seconds: some servers tell milliseconds, fractions, 0 or nothing. */
export function unixSeconds(created: unknown): number | undefined {
  if (typeof created !== "number" || !(created >= 1)) return undefined;
  return Math.floor(created > latestSeconds ? created / 1_000 : created);
}

/** In the year 5138; a greater number is one of milliseconds. */
const latestSeconds = 1e11;

/** Whether the message or delta calls tools. */
const callsTools = ({ tool_calls: calls, function_call: call }: Fields): boolean =>
  (Array.isArray(calls) && calls.length > 0) || fieldsOf(call) !== undefined;

/** One of the contract's finish reasons, whatever word the provider wrote (`function_call` for clients of that field). */
function finishWord(
  choice: Fields,
  { calls, legacyFunctions }: { calls: boolean; legacyFunctions: boolean },
): unknown {
  return encodeFinish(reconcileFinish(decodeFinish(choice as JsonObject), calls), {
    legacyFunctions,
  }).finish_reason;
}

/** The message or delta without thoughts, in whichever field they are. */
function withoutThoughts(said: Fields): Fields {
  const { content } = said;
  const hasThoughts = Array.isArray(content) && content.some(isThought);
  if (!hasThoughts && !reasoningFields.some((field) => field in said)) return said;
  const rest: Record<string, unknown> = { ...said };
  for (const field of reasoningFields) delete rest[field];
  return hasThoughts ? { ...rest, content: content.filter((part) => !isThought(part)) } : rest;
}

/** Mistral's thoughts are parts of the content. */
const isThought = (part: unknown): boolean => fieldsOf(part)?.type === "thinking";

/**
 * Choices of a whole completion in the contract's shape: an index, a message with its role, one of five finish reasons, and no
 * thoughts where they are not wanted. Undefined where they have it already, so that their text can stay as it is.
 */
export function shapedChoices(
  choices: readonly unknown[],
  shape: AnswerShape,
): readonly unknown[] | undefined {
  const shaped = choices.map((value, position) =>
    shapedChoice(fieldsOf(value) ?? {}, { position, shape }),
  );
  return shaped.some((choice, position) => choice !== choices[position]) ? shaped : undefined;
}

function shapedChoice(
  choice: Fields,
  { position, shape }: { position: number; shape: AnswerShape },
): Fields {
  const message = shapedMessage(choice.message, shape);
  const calls = callsTools(message);
  const legacyFunctions = shape.legacyFunctions || (calls && !Array.isArray(message.tool_calls));
  const finish = finishWord(choice, { calls, legacyFunctions });
  if (
    typeof choice.index === "number" &&
    message === choice.message &&
    finish === choice.finish_reason
  )
    return choice;
  return {
    ...choice,
    index: typeof choice.index === "number" ? choice.index : position,
    message,
    finish_reason: finish,
  };
}

function shapedMessage(value: unknown, { hidesReasoning }: AnswerShape): Fields {
  const message = fieldsOf(value) ?? {};
  const shown = hidesReasoning ? withoutThoughts(message) : message;
  if (shown.role === "assistant" && shown.content !== undefined) return shown;
  return { ...shown, role: "assistant", content: shown.content ?? null };
}

/** A chunk as far as its shape is read. */
interface ShapedChunk {
  object?: unknown;
  created?: unknown;
  system_fingerprint?: unknown;
  usage?: unknown;
  choices?: readonly unknown[];
}

/** A chunk as the client gets it. */
export interface ShownChunk {
  text: string;
  /** A chunk that differs in its text alone is shown alike. */
  isSteady: boolean;
}

const chunkObject = "chat.completion.chunk";

/**
 * Brings the chunks of a stream into the contract's shape, and says nothing of those that have it: `object`, `created` in seconds, a
 * role in the first delta of each choice, `finish_reason` in each entry, one of five words and once.
 */
export class ChunkShape {
  private readonly shape: AnswerShape;
  private readonly nowSeconds: () => number;
  private readonly choices = new Map<number, { calls: boolean; finished: boolean }>();
  private firstCreated: number | undefined;

  constructor(shape: AnswerShape, { nowSeconds }: { nowSeconds: () => number }) {
    this.shape = shape;
    this.nowSeconds = nowSeconds;
  }

  /** When the answer was begun, for chunks that do not say it. */
  get created(): number {
    return (this.firstCreated ??= this.nowSeconds());
  }

  /** The chunk's text, changed where its shape has to. */
  shown(text: string, chunk: ShapedChunk): ShownChunk {
    const seconds = unixSeconds(chunk.created);
    this.firstCreated ??= seconds;
    const edits = new Map<string, string | undefined>();
    if (chunk.object !== chunkObject) edits.set("object", JSON.stringify(chunkObject));
    if (seconds === undefined || seconds !== chunk.created)
      edits.set("created", String(this.created));
    // OpenRouter's client refuses chunks with these members where they are null.
    if (chunk.system_fingerprint === null) edits.set("system_fingerprint", undefined);
    if (chunk.usage === null) edits.set("usage", undefined);
    const choices = Array.isArray(chunk.choices) ? (chunk.choices as readonly unknown[]) : [];
    const isFirst = choices.some((value) => !this.choices.has(indexOf(fieldsOf(value) ?? {})));
    const shaped = choices.map((value) => this.shapedEntry(fieldsOf(value) ?? {}));
    const isSame =
      choices === chunk.choices && shaped.every((entry, position) => entry === choices[position]);
    const withRole =
      isSame || shaped.length !== 1
        ? undefined
        : addRole(text, { came: choices[0], shown: shaped[0] });
    if (!isSame && withRole === undefined) edits.set("choices", JSON.stringify(shaped));
    const shownText = withRole ?? text;
    // What the first entry of a choice gets beside its text is told once: clients add up the deltas.
    return {
      text: edits.size === 0 ? shownText : editMembers(shownText, edits),
      isSteady: isSame || !isFirst,
    };
  }

  private shapedEntry(entry: Fields): Fields {
    const index = indexOf(entry);
    const delta = this.shapedDelta(entry.delta, { isFirst: !this.choices.has(index) });
    const state = this.choices.get(index) ?? { calls: false, finished: false };
    this.choices.set(index, state);
    state.calls ||= callsTools(delta);
    const ends = !state.finished && hasFinished(entry as JsonObject);
    const finish = ends
      ? finishWord(entry, { calls: state.calls, legacyFunctions: this.shape.legacyFunctions })
      : null;
    state.finished ||= ends;
    if (index === entry.index && delta === entry.delta && finish === entry.finish_reason)
      return entry;
    return { ...entry, index, delta, finish_reason: finish };
  }

  private shapedDelta(value: unknown, { isFirst }: { isFirst: boolean }): Fields {
    const delta = fieldsOf(value) ?? emptyDelta;
    let shown = this.shape.hidesReasoning ? withoutThoughts(delta) : delta;
    if (shown.tool_calls === null) {
      const { tool_calls: _none, ...rest } = shown;
      shown = rest;
    }
    if (isFirst && shown.role !== "assistant") {
      const { role: _other, ...rest } = shown;
      return { role: "assistant", ...rest };
    }
    if (isFirst || shown.role === undefined || shown.role === "assistant") return shown;
    const { role: _none, ...rest } = shown;
    return rest;
  }
}

const emptyDelta: Fields = {};

/** Which choice it is; servers that give one alone may leave it out. */
const indexOf = ({ index }: Fields): number => (typeof index === "number" ? index : 0);

/** The chunk's text with a role in its only delta, where nothing else is to change: every other character stays. */
function addRole(
  text: string,
  { came, shown }: { came: unknown; shown: Fields | undefined },
): string | undefined {
  const [before, after] = [fieldsOf(came) ?? {}, shown ?? {}];
  const [deltaBefore, deltaAfter] = [fieldsOf(before.delta), fieldsOf(after.delta) ?? {}];
  if (
    deltaBefore === undefined ||
    "role" in deltaBefore ||
    before.index !== after.index ||
    before.finish_reason !== after.finish_reason
  ) {
    return undefined;
  }
  if (Object.keys(deltaAfter).length !== Object.keys(deltaBefore).length + 1) return undefined;
  const role = `"role":"assistant"${Object.keys(deltaBefore).length === 0 ? "" : ","}`;
  const place = /"delta"\s*:\s*\{/.exec(text);
  return place === null
    ? undefined
    : text.slice(0, place.index + place[0].length) +
        role +
        text.slice(place.index + place[0].length);
}
