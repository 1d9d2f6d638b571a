import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { ItemPlace, StreamPart } from "../../canonical/stream-part.ts";
import type { ToolKind } from "../../canonical/request.ts";
import type { DecodeContext } from "../dialect.ts";
import { asNumber, asObject, asString } from "../wire-fields.ts";
import { unwrapInput } from "../tools.ts";
import { mintedCallId } from "./decode-response.ts";
import { sealsOf, thoughtSignature } from "./answer-fields.ts";

interface CallState {
  /** The wire's `index`; absent where a server sends none. */
  index: number | undefined;
  id: string;
  name: string;
  kind: ToolKind;
  /** Everything that came so far. */
  text: string;
  /** Known once the call was announced, which waits for its name. */
  place: ItemPlace | undefined;
  ended: boolean;
  /**
   * A custom tool that went out as a function: its input is known only when the arguments are
   * whole.
   */
  unwraps: boolean;
  /** The server repeats the whole arguments in every delta instead of adding to them. */
  accumulates: boolean | undefined;
}

/** What the stream's other parts know and calls need. */
export interface CallSurroundings {
  nextPlace: () => ItemPlace;
  responseId: () => string;
  context: DecodeContext;
}

/**
 * Tool calls of one choice. Calls are distinguished by `index`, by a new id where servers give
 * every call the same index, or by order where they send neither; deltas of several calls may
 * alternate.
 */
export class ToolCallStream {
  private readonly calls: CallState[] = [];
  private readonly surroundings: CallSurroundings;

  constructor(surroundings: CallSurroundings) {
    this.surroundings = surroundings;
  }

  /** True once a call has been announced. */
  get hasCalls(): boolean {
    return this.calls.some((call) => call.place !== undefined);
  }

  read(delta: JsonValue): StreamPart[] {
    const fields = asObject(delta);
    if (fields === undefined) return [];
    const custom = asObject(fields.custom);
    const named = custom ?? asObject(fields.function) ?? {};
    const name = asString(named.name) ?? "";
    const call =
      this.find(fields, name) ?? this.add(fields, custom === undefined ? "function" : "custom");
    const repeats = call.place !== undefined && name !== "" && asString(fields.id) === call.id;
    if (call.place === undefined) call.name += name;
    const fresh = freshText(call, {
      text: textOf(custom ? custom.input : named.arguments),
      repeats,
    });
    call.text += fresh;
    return call.place === undefined ? this.announce(call, fields) : deltaOf(call, fresh);
  }

  /** Ends every call that is still open. */
  close(): StreamPart[] {
    return this.calls.flatMap(endOf);
  }

  private find(fields: JsonObject, name: string): CallState | undefined {
    const index = asNumber(fields.index);
    const id = asString(fields.id);
    const found =
      index === undefined
        ? id
          ? this.calls.find((call) => call.id === id)
          : this.calls.at(-1)
        : this.calls.findLast((call) => call.index === index);
    const isAnother =
      found !== undefined && id && found.id !== id && name !== "" && found.name !== "";
    return isAnother ? undefined : found;
  }

  private add(fields: JsonObject, kind: ToolKind): CallState {
    const id =
      asString(fields.id) || mintedCallId(this.surroundings.responseId(), this.calls.length);
    const call: CallState = {
      index: asNumber(fields.index),
      id,
      name: "",
      kind,
      text: "",
      place: undefined,
      ended: false,
      unwraps: false,
      accumulates: undefined,
    };
    this.calls.push(call);
    return call;
  }

  /**
   * The call's start, once its name is known, and what came with it. Calls before it that are whole
   * end here.
   */
  private announce(call: CallState, fields: JsonObject): StreamPart[] {
    if (call.name === "") return [];
    const { context, nextPlace } = this.surroundings;
    const ended = this.calls.flatMap((other) =>
      other !== call && isWhole(other) ? endOf(other) : [],
    );
    const alias = context.toolAliases?.get(call.name);
    call.unwraps = alias?.unwrapsInput === true;
    if (call.unwraps) call.kind = "custom";
    call.place = nextPlace();
    return [
      ...ended,
      {
        type: "tool-call-start",
        ...call.place,
        kind: call.kind,
        id: call.id,
        name: alias?.name ?? call.name,
        ...(alias?.namespace !== undefined && { namespace: alias.namespace }),
        ...thoughtSignature(fields.extra_content, sealsOf(context.providerId)),
      },
      ...deltaOf(call, call.text),
    ];
  }
}

/** Arguments are text; a few servers send the object itself, whole. */
const textOf = (value: unknown): string =>
  typeof value === "string"
    ? value
    : value === undefined || value === null
      ? ""
      : JSON.stringify(value);

/**
 * What a delta adds. Servers that repeat id and name on every delta may repeat the arguments too;
 * the first repetition tells which kind it is.
 */
function freshText(call: CallState, { text, repeats }: { text: string; repeats: boolean }): string {
  if (!repeats || call.text === "" || text === "") return text;
  call.accumulates ??= text.startsWith(call.text);
  return call.accumulates && text.startsWith(call.text) ? text.slice(call.text.length) : text;
}

function deltaOf(call: CallState, text: string): StreamPart[] {
  if (call.place === undefined || call.ended || call.unwraps || text === "") return [];
  return [{ type: "tool-call-delta", ...call.place, arguments: text }];
}

function endOf(call: CallState): StreamPart[] {
  if (call.place === undefined || call.ended) return [];
  call.ended = true;
  const end: StreamPart = { type: "tool-call-end", ...call.place };
  return call.unwraps
    ? [{ type: "tool-call-delta", ...call.place, arguments: unwrapInput(call.text) }, end]
    : [end];
}

/** True when nothing can follow: a JSON object takes no more text once it is closed. */
function isWhole(call: CallState): boolean {
  if (call.place === undefined || call.ended || (call.kind === "custom" && !call.unwraps))
    return false;
  try {
    JSON.parse(call.text);
    return call.text.trimEnd().endsWith("}");
  } catch {
    return false;
  }
}
