import type { JsonObject } from "../../../canonical/json.ts";
import { reconcileFinish } from "../../../canonical/response.ts";
import type { OriginalRequest } from "../../shared/exchange.ts";
import { decodeFinish, encodeFinish, reasoningFields, hasFinished } from "../answer-fields.ts";
import { type ToolNames, DeclaredNames } from "../call-name.ts";
import { thinkingText } from "../messages/decode-messages.ts";
import { hidesReasoning } from "../request-schema.ts";
import {
  type Fields,
  fieldsOf,
  CallPlaces,
  type ChoiceCalls,
  placedCalls,
  withRest,
} from "./kept-calls.ts";
import { editMembers } from "../../../../platform/kernel/json/json-members.ts";

/** The parts of a request that determine the form of its answer. */
export interface AnswerShape {
  /**
   * Whether the client calls functions by the older field, whose finish reason is `function_call`.
   */
  legacyFunctions: boolean;
  /** Whether the client asked not to see reasoning (`reasoning.exclude`). */
  hidesReasoning: boolean;
  toolNames: ToolNames;
  /** What ids of calls are made of where neither they nor the answer have one. */
  callSeed: string;
}

/** Returns the form that a chat request asks for. */
export function answerShapeOf({
  body,
  traceId,
}: Pick<OriginalRequest, "body" | "traceId">): AnswerShape {
  // Not the whole body, which a stream would keep in memory.
  const { tools, functions, function_call: functionCall } = body;
  return {
    legacyFunctions: Array.isArray(functions) || (functionCall ?? undefined) !== undefined,
    hidesReasoning: hidesReasoning(body),
    callSeed: traceId,
    toolNames: () => [...namesIn(tools), ...namesIn(functions)],
  };
}

/** Returns the names of a request's tools or functions; some of wrong types are left out. */
const namesIn = (tools: unknown): string[] =>
  (Array.isArray(tools) ? (tools as readonly unknown[]) : []).flatMap((value) => {
    const tool = fieldsOf(value);
    const { name } = fieldsOf(tool?.function) ?? fieldsOf(tool?.custom) ?? tool ?? {};
    return typeof name === "string" ? [name] : [];
  });

/**
 * Returns the value in Unix seconds; undefined where it is no time. Some servers send milliseconds,
 * fractions, 0 or nothing.
 */
export function unixSeconds(created: unknown): number | undefined {
  if (typeof created !== "number" || !(created >= 1)) return undefined;
  return Math.floor(created > latestSeconds ? created / 1_000 : created);
}

/** A time in the year 5138; a greater number is in milliseconds. */
const latestSeconds = 1e11;

/** Returns whether the message or delta calls tools. */
export const callsTools = ({ tool_calls: calls, function_call: call }: Fields): boolean =>
  (Array.isArray(calls) && calls.length > 0) || fieldsOf(call) !== undefined;

/**
 * Returns one of the contract's finish reasons for any word of the provider (`function_call` for
 * clients of that field).
 */
export function finishWord(
  choice: Fields,
  { calls, legacyFunctions }: { calls: boolean; legacyFunctions: boolean },
): unknown {
  return encodeFinish(reconcileFinish(decodeFinish(choice as JsonObject), calls), {
    legacyFunctions,
  }).finish_reason;
}

/** Returns the message or delta without reasoning, in any of its fields. */
export function withoutThoughts(said: Fields): Fields {
  const { content } = said;
  const hasThoughts = Array.isArray(content) && content.some(isThought);
  if (!hasThoughts && !reasoningFields.some((field) => field in said)) return said;
  const rest: Record<string, unknown> = { ...said };
  for (const field of reasoningFields) delete rest[field];
  return hasThoughts ? { ...rest, content: content.filter((part) => !isThought(part)) } : rest;
}

/** Returns whether a part is reasoning, which Mistral sends within the content. */
const isThought = (part: unknown): boolean => fieldsOf(part)?.type === "thinking";

/**
 * Returns the message or delta with text in place of a list of texts and thoughts, in which
 * Mistral's models that reason answer: clients of OpenAI read text alone. Thoughts are in the fields
 * that other answers have them in.
 */
export function withContentText(said: Fields): Fields {
  const { content, ...rest } = said;
  if (!Array.isArray(content) || !content.every((part) => isThought(part) || isText(part)))
    return said;
  const texts = content.filter(isText).map(({ text }) => text);
  const thoughts = content
    .filter(isThought)
    .map((part) => thinkingText(fieldsOf(part)?.thinking))
    .join("");
  return {
    ...rest,
    ...(texts.length > 0 && { content: texts.join("") }),
    ...(thoughts !== "" && { reasoning_content: thoughts, reasoning: thoughts }),
  };
}

const isText = (part: unknown): part is { text: string } => {
  const { type, text } = fieldsOf(part) ?? {};
  return type === "text" && typeof text === "string";
};

/** The state of one choice of a stream. */
interface ChoiceState extends ChoiceCalls {
  calls: boolean;
  /** Whether the choice calls functions by the older field alone. */
  legacyCalls: boolean;
  finished: boolean;
}

/** The members of a chunk that determine its form. */
interface ShapedChunk {
  id?: unknown;
  object?: unknown;
  created?: unknown;
  system_fingerprint?: unknown;
  usage?: unknown;
  choices?: unknown;
}

/** A chunk as the client gets it. */
interface ShownChunk {
  text: string;
  /** Whether the choices were written again, so that escapes in them may differ. */
  isRewritten: boolean;
}

const chunkObject = "chat.completion.chunk";

/**
 * Brings the chunks of a stream into the contract's form, and leaves those alone that have it
 * already: `object`, one `created` in seconds, a role in the first delta of each choice, an index
 * for each tool call, and in each entry a `finish_reason`, which is one of five words and sent once
 * per choice.
 */
export class ChunkShape {
  private readonly nowSeconds: () => number;
  private readonly choices = new Map<number, ChoiceState>();
  private readonly declared: DeclaredNames;
  private firstCreated: number | undefined;
  private upstreamId: string | undefined;

  constructor(
    private readonly shape: AnswerShape,
    { nowSeconds }: { nowSeconds: () => number },
  ) {
    this.nowSeconds = nowSeconds;
    this.declared = new DeclaredNames(shape.toolNames);
  }

  /** The time when the answer began, for chunks that do not state it. */
  get created(): number {
    return (this.firstCreated ??= this.nowSeconds());
  }

  /** Returns the chunk's text, changed where its form requires. */
  shown(text: string, chunk: ShapedChunk): ShownChunk {
    this.firstCreated ??= unixSeconds(chunk.created);
    this.upstreamId ??= typeof chunk.id === "string" ? chunk.id : undefined;
    const edits = new Map<string, string | undefined>();
    if (chunk.object !== chunkObject) edits.set("object", JSON.stringify(chunkObject));
    // The whole stream has one creation time, even where the provider sends one with each chunk.
    if (chunk.created !== this.created) edits.set("created", String(this.created));
    // OpenRouter's client refuses chunks with these members where they are null.
    if (chunk.system_fingerprint === null) edits.set("system_fingerprint", undefined);
    if (chunk.usage === null) edits.set("usage", undefined);
    const choices = Array.isArray(chunk.choices) ? (chunk.choices as readonly unknown[]) : [];
    const shaped = choices.map((value) => this.shapedEntry(fieldsOf(value) ?? {}));
    const isSame =
      choices === chunk.choices && shaped.every((entry, position) => entry === choices[position]);
    const withRole =
      isSame || shaped.length !== 1
        ? undefined
        : addRole(text, { came: choices[0], shown: shaped[0] });
    const isRewritten = !isSame && withRole === undefined;
    if (isRewritten) edits.set("choices", JSON.stringify(shaped));
    const shownText = withRole ?? text;
    return { text: edits.size === 0 ? shownText : editMembers(shownText, edits), isRewritten };
  }

  private shapedEntry(entry: Fields): Fields {
    const index = indexOf(entry);
    const known = this.choices.get(index);
    const state = known ?? {
      calls: false,
      legacyCalls: false,
      finished: false,
      places: new CallPlaces(this.declared),
      legacyPlace: new CallPlaces(this.declared),
    };
    const came = fieldsOf(entry.delta) ?? emptyDelta;
    const said = this.shapedDelta(came, { isFirst: known === undefined, state });
    this.choices.set(index, state);
    if (callsTools(came)) {
      state.legacyCalls = !Array.isArray(came.tool_calls) && (state.legacyCalls || !state.calls);
      state.calls = true;
    }
    const ends = !state.finished && hasFinished(entry as JsonObject);
    const delta = ends && state.calls ? withRest(said, state) : said;
    const legacyFunctions = this.shape.legacyFunctions || state.legacyCalls;
    const finish = ends ? finishWord(entry, { calls: state.calls, legacyFunctions }) : null;
    state.finished ||= ends;
    if (index === entry.index && delta === entry.delta && finish === entry.finish_reason)
      return entry;
    return { ...entry, index, delta, finish_reason: finish };
  }

  /** Returns the pieces of calls that were held back, for the choices that have not finished. */
  heldCalls(): { index: number; delta: Fields }[] {
    return [...this.choices].flatMap(([index, state]) => {
      const delta = withRest(emptyDelta, state);
      return delta === emptyDelta ? [] : [{ index, delta }];
    });
  }

  private shapedDelta(
    delta: Fields,
    { isFirst, state }: { isFirst: boolean; state: ChoiceState },
  ): Fields {
    let shown = withContentText(this.shape.hidesReasoning ? withoutThoughts(delta) : delta);
    if (shown.tool_calls === null) {
      const { tool_calls: _none, ...rest } = shown;
      shown = rest;
    }
    if (callsTools(shown))
      shown = placedCalls(shown, state, this.upstreamId || this.shape.callSeed);
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

/** Returns the index of a choice; servers that send one choice may omit it. */
const indexOf = ({ index }: Fields): number => (typeof index === "number" ? index : 0);

/**
 * Returns the chunk's text with a role in its only delta, where nothing else has to change; every
 * other character stays.
 */
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
  const kept = Object.keys(deltaBefore);
  if (
    deltaAfter.role !== "assistant" ||
    Object.keys(deltaAfter).length !== kept.length + 1 ||
    kept.some((name) => deltaBefore[name] !== deltaAfter[name])
  )
    return undefined;
  const role = `"role":"assistant"${Object.keys(deltaBefore).length === 0 ? "" : ","}`;
  const place = /"delta"\s*:\s*\{/.exec(text);
  return place === null
    ? undefined
    : text.slice(0, place.index + place[0].length) +
        role +
        text.slice(place.index + place[0].length);
}
