import {
  editMembers,
  editScanned,
  replaceEach,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import { type Finish, reconcileFinish } from "../../../canonical/response.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import { fallbackMembers } from "../../shared/gateway-facts.ts";
import type { ShownAnswer, WholeAnswer } from "../../shared/passthrough.ts";
import {
  decodeFinish,
  encodeFinish,
  errorOfFinish,
  hasFinished,
  providerMember,
  reasoningFields,
} from "../answer-fields.ts";
import { pricedUsageText, readChatUsage, withTier } from "../usage.ts";
import { DeclaredNames } from "../call-name.ts";
import type { AnswerShape } from "./answer-shape.ts";
import {
  CallPlaces,
  type ChoiceCalls,
  type Fields,
  fieldsOf,
  placedCalls,
  withRest,
  withWholeCalls,
} from "./kept-calls.ts";

interface ChoiceMessage {
  content?: unknown;
  refusal?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  tool_calls?: unknown;
  function_call?: unknown;
  audio?: unknown;
}

interface CompletionBody {
  service_tier?: unknown;
  id?: unknown;
  object?: unknown;
  created?: unknown;
  system_fingerprint?: unknown;
  provider?: unknown;
  error?: unknown;
  choices?: unknown;
  usage?: unknown;
}

const lengthOf = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  return Array.isArray(value)
    ? value.reduce<number>((sum, part: { text?: unknown } | null) => sum + lengthOf(part?.text), 0)
    : 0;
};

const toolLength = (value: unknown): number =>
  Array.isArray(value) && value.length > 0 ? JSON.stringify(value).length : 0;

/** The request and the route that a completion answers. */
interface CompletionOptions {
  shape: AnswerShape;
  /** The provider's slug. */
  providerId: string;
  nowSeconds: () => number;
}

/** Reads what settlement needs from a completion; undefined when the text is none. */
export function readCompletion(
  text: string,
  body: CompletionBody,
  { shape, providerId, nowSeconds }: CompletionOptions,
): WholeAnswer | undefined {
  const choices = body.choices;
  if (!Array.isArray(choices)) return undefined;
  let content = 0;
  let reasoning = 0;
  let other = 0;
  let finishReason: string | null = null;
  let finish: Finish | undefined;
  for (const choice of choices as ({ message?: ChoiceMessage; finish_reason?: unknown } | null)[]) {
    const message = choice?.message ?? {};
    content += lengthOf(message.content) + lengthOf(message.refusal);
    reasoning += lengthOf(message.reasoning_content ?? message.reasoning);
    other += toolLength(message.tool_calls);
    if (message.function_call || message.audio) other += 1;
    if (typeof choice?.finish_reason !== "string") continue;
    finishReason ??= choice.finish_reason;
    finish ??= decodeFinish(choice as JsonObject);
  }
  const metered = withTier(readChatUsage(body.usage), body.service_tier);
  const answered = content + other > 0;
  const isCut = finish?.reason === "length";
  return {
    finishReason,
    metered,
    upstreamId: typeof body.id === "string" ? body.id : null,
    outputCharacters: content + reasoning + other,
    hasContent: answered || isCut || isRefused(finish) || (reasoning > 0 && !isBroken(finish)),
    spentOnReasoning:
      !answered && isCut && (reasoning > 0 || (metered?.usage.reasoningTokens ?? 0) > 0),
    render: (shown) => {
      const lacking = lackingMembers(body, { choices, finish, shape, nowSeconds });
      const rendered = renderCompletion(text, shown, lacking);
      return withProvider(rendered, { named: body.provider, providerId });
    },
  };
}

const isRefused = (finish: Finish | undefined): boolean =>
  finish?.reason === "content_filter" || finish?.reason === "refusal";

/** Returns whether the provider broke off, so that reasoning alone is no answer. */
const isBroken = (finish: Finish | undefined): boolean => finish?.reason === "error";

const objectName = "chat.completion";

/** Returns members that the contract requires in another form, as JSON text; usually none. */
function lackingMembers(
  body: CompletionBody,
  {
    choices,
    finish,
    shape,
    nowSeconds,
  }: {
    choices: readonly unknown[];
    finish: Finish | undefined;
    shape: AnswerShape;
    nowSeconds: () => number;
  },
): ReadonlyMap<string, string> {
  const lacking = new Map<string, string>();
  if (body.object !== objectName) lacking.set("object", JSON.stringify(objectName));
  const created = unixSeconds(body.created);
  if (created === undefined || created !== body.created)
    lacking.set("created", String(created ?? nowSeconds()));
  // OpenRouter's client (1.3.19) refuses a completion without this member.
  if (typeof body.system_fingerprint !== "string" && body.system_fingerprint !== null)
    lacking.set("system_fingerprint", "null");
  const responseId = typeof body.id === "string" && body.id !== "" ? body.id : shape.callSeed;
  const shaped = shapedChoices(choices, { ...shape, responseId });
  if (shaped !== undefined) lacking.set("choices", JSON.stringify(shaped));
  if (finish?.reason === "error" && (body.error ?? undefined) === undefined)
    lacking.set("error", JSON.stringify(errorOfFinish(finish)));
  return lacking;
}

/** The members of every answer that are replaced, in the order of `replaceEach`. */
const shownNames = ["id", "model", "usage"] as const;

/**
 * Returns the answer for the client: the upstream's text with id, model, usage and fallback
 * replaced.
 */
function renderCompletion(
  text: string,
  shown: ShownAnswer,
  lacking: ReadonlyMap<string, string>,
): string {
  const { metered, chargedNano, fallback } = shown;
  const usual =
    fallback !== undefined || lacking.size > 0
      ? undefined
      : replaceEach(text, shownNames, (index, start, end) => {
          if (index < 2) return JSON.stringify(index === 0 ? shown.id : shown.model);
          return pricedUsageText({ original: text.slice(start, end), metered, chargedNano });
        });
  return usual ?? renderUnusual(text, shown, lacking);
}

/**
 * Does the same for an answer that lacks any of them or another required member, or that has more
 * to replace.
 */
function renderUnusual(
  text: string,
  { id, model, metered, chargedNano, fallback }: ShownAnswer,
  lacking: ReadonlyMap<string, string>,
): string {
  const members = scanMembers(text);
  const usage = members.find((member) => member.key === "usage");
  const original = usage === undefined ? undefined : text.slice(usage.valueStart, usage.valueEnd);
  const edits = new Map<string, string | undefined>([
    ["id", JSON.stringify(id)],
    ["model", JSON.stringify(model)],
    ["usage", pricedUsageText({ original, metered, chargedNano })],
  ]);
  for (const [key, value] of lacking) edits.set(key, value);
  for (const [key, value] of fallback === undefined ? [] : fallbackMembers(fallback))
    edits.set(key, value);
  return editScanned(text, members, edits);
}

/** Returns the answer with its provider, unless the upstream named one. */
function withProvider(
  text: string,
  { named, providerId }: { named: unknown; providerId: string },
): string {
  if (typeof named === "string") return text;
  const value = JSON.stringify(providerId);
  if (named !== undefined) return editMembers(text, new Map([[providerMember, value]]));
  return `${text.slice(0, text.lastIndexOf("}"))},"${providerMember}":${value}}`;
}

/** The form of a whole answer, and the id that its provider gave it. */
interface WholeShape extends AnswerShape {
  responseId: string;
}

/**
 * Returns the value in Unix seconds; undefined where it is no time. Some servers send milliseconds,
 * fractions, 0 or nothing.
 */
function unixSeconds(created: unknown): number | undefined {
  if (typeof created !== "number" || !(created >= 1)) return undefined;
  return Math.floor(created > latestSeconds ? created / 1_000 : created);
}

/** A time in the year 5138; a greater number is in milliseconds. */
const latestSeconds = 1e11;

/** Returns whether the message or delta calls tools. */
const callsTools = ({ tool_calls: calls, function_call: call }: Fields): boolean =>
  (Array.isArray(calls) && calls.length > 0) || fieldsOf(call) !== undefined;

/**
 * Returns one of the contract's finish reasons for any word of the provider (`function_call` for
 * clients of that field).
 */
function finishWord(
  choice: Fields,
  { calls, legacyFunctions }: { calls: boolean; legacyFunctions: boolean },
): unknown {
  return encodeFinish(reconcileFinish(decodeFinish(choice as JsonObject), calls), {
    legacyFunctions,
  }).finish_reason;
}

/** Returns the message or delta without reasoning, in any of its fields. */
function withoutThoughts(said: Fields): Fields {
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
 * Returns the choices of a whole completion in the contract's form: an index, a message with its
 * role, one of five finish reasons, and no reasoning where that is hidden. Undefined where they
 * have this form already, so that their text can stay as it is.
 */
function shapedChoices(
  choices: readonly unknown[],
  shape: WholeShape,
): readonly unknown[] | undefined {
  const shaped = choices.map((value, position) =>
    shapedChoice(fieldsOf(value) ?? {}, { position, shape }),
  );
  return shaped.some((choice, position) => choice !== choices[position]) ? shaped : undefined;
}

function shapedChoice(
  choice: Fields,
  { position, shape }: { position: number; shape: WholeShape },
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

function shapedMessage(value: unknown, { hidesReasoning, responseId }: WholeShape): Fields {
  const message = fieldsOf(value) ?? {};
  const shown = withWholeCalls(hidesReasoning ? withoutThoughts(message) : message, responseId);
  if (shown.role === "assistant" && shown.content !== undefined) return shown;
  return { ...shown, role: "assistant", content: shown.content ?? null };
}

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
  choices?: readonly unknown[];
}

/** A chunk as the client gets it. */
interface ShownChunk {
  text: string;
  /** Whether a chunk that differs only in its text is shown in the same way. */
  isSteady: boolean;
}

const chunkObject = "chat.completion.chunk";

/**
 * Brings the chunks of a stream into the contract's form, and leaves those alone that have it
 * already: `object`, one `created` in seconds, a role in the first delta of each choice, an index
 * for each tool call, and in each entry a `finish_reason`, which is one of five words and sent once
 * per choice.
 */
export class ChunkShape {
  private readonly shape: AnswerShape;
  private readonly nowSeconds: () => number;
  private readonly choices = new Map<number, ChoiceState>();
  private readonly declared: DeclaredNames;
  private firstCreated: number | undefined;
  private upstreamId: string | undefined;

  constructor(shape: AnswerShape, { nowSeconds }: { nowSeconds: () => number }) {
    this.shape = shape;
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
    // What is added to the first entry of a choice is sent once, since clients add up the deltas.
    return {
      text: edits.size === 0 ? shownText : editMembers(shownText, edits),
      isSteady: isSame || !isFirst,
    };
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
    let shown = this.shape.hidesReasoning ? withoutThoughts(delta) : delta;
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
