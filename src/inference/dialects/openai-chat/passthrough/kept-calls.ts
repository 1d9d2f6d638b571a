import { CallName, type DeclaredNames } from "../call-name.ts";
import { mintedCallId } from "../decode-response.ts";

/** An object of an answer, whose members have to be checked one by one. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns the value if it is an object; undefined otherwise. */
export const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : undefined;

/**
 * Returns the message with an id and arguments in JSON text for each of its calls. Clients parse
 * the arguments, which some servers omit for a tool without parameters.
 */
export function withWholeCalls(message: Fields, responseId: string): Fields {
  const { tool_calls: calls, function_call: legacy } = message;
  const shownCalls = Array.isArray(calls)
    ? eachKept(calls, (call, position) => wholeCall(call, mintedCallId(responseId, position)))
    : calls;
  const shownLegacy = fieldsOf(legacy) === undefined ? legacy : argued(legacy as Fields);
  return shownCalls === calls && shownLegacy === legacy
    ? message
    : {
        ...message,
        ...(shownCalls !== undefined && { tool_calls: shownCalls }),
        ...(shownLegacy !== undefined && { function_call: shownLegacy }),
      };
}

function wholeCall(call: unknown, mintedId: string): unknown {
  const fields = fieldsOf(call);
  if (fields === undefined) return call;
  const named = fieldsOf(fields.function);
  const shown = named && argued(named);
  const lacksId = idOf(fields) === "";
  if (shown === named && !lacksId) return call;
  return {
    ...(lacksId && { id: mintedId, type: kindOf(fields) }),
    ...fields,
    ...(lacksId && { id: mintedId }),
    ...(shown && { function: shown }),
  };
}

const idOf = ({ id }: Fields): string => (typeof id === "string" ? id : "");

const kindOf = ({ custom }: Fields): string => (custom === undefined ? "function" : "custom");

function argued(named: Fields): Fields {
  const { arguments: came } = named;
  if (typeof came === "string" && came.trim() !== "") return named;
  const isText = came === undefined || came === null || typeof came === "string";
  return { ...named, arguments: isText ? "{}" : JSON.stringify(came) };
}

/** Returns the list with each value changed, or the same list where no value is. */
function eachKept(
  values: readonly unknown[],
  change: (value: unknown, position: number) => unknown,
): readonly unknown[] {
  const changed = values.map(change);
  return changed.some((value, position) => value !== values[position]) ? changed : values;
}

/** A call of a stream, as far as its pieces have arrived. */
interface KnownCall {
  /** The `index` that the provider sent. */
  came: unknown;
  id: string;
  /** Whether the gateway created the id, since the call began without one. */
  isMinted: boolean;
  name: CallName;
  /** Whether the client has been sent a piece. */
  isShown: boolean;
  /** The pieces until now as one, while the name may go on. */
  held: Fields | undefined;
}

/**
 * Adds to the calls of one choice what clients need to put the pieces together: an index, counted
 * from 0, and an id and the whole name in the first piece alone. Some servers omit these, and some
 * send the same ones for all calls; some send a name in parts, of which clients take the first, the
 * last or all, and some repeat it in every piece.
 */
export class CallPlaces {
  private readonly calls: KnownCall[] = [];

  constructor(private readonly declared: DeclaredNames) {}

  /**
   * Returns the calls of a delta in this form, or the same list where they have it already. A piece
   * whose name may go on is left out and comes with the next one of its call.
   */
  placed(calls: readonly unknown[], responseId: string): readonly unknown[] {
    const shown = eachKept(calls, (call) => {
      const fields = fieldsOf(call);
      return fields === undefined ? call : this.piece(fields, responseId);
    });
    return shown.includes(undefined) ? shown.filter((call) => call !== undefined) : shown;
  }

  /** Returns the pieces that are still held back, since the answer ends. */
  rest(): Fields[] {
    return this.calls.flatMap((known, index) => {
      const { held } = known;
      return held === undefined ? [] : [this.shown(held, { known, index })];
    });
  }

  private piece(fields: Fields, responseId: string): Fields | undefined {
    const { name, text } = saidOf(fields);
    const index = this.placeOf(fields, name);
    const known = this.calls[index] ?? this.added(fields, responseId);
    known.name.add(name, { hasArguments: text !== "" });
    const piece = known.held === undefined ? fields : joined(known.held, fields);
    if (text === "" && !known.name.isWhole && !known.isShown) {
      known.held = piece;
      return undefined;
    }
    return this.shown(piece, { known, index });
  }

  /** Returns a piece for the client: the first of its call, or one that adds to it. */
  private shown(piece: Fields, { known, index }: { known: KnownCall; index: number }): Fields {
    const { isMinted, isShown } = known;
    known.held = undefined;
    known.isShown = true;
    const member = memberOf(piece);
    const named = fieldsOf(piece[member]);
    const said =
      named && (isShown ? saidAfter(named, known.name.text) : saidFirst(named, known.name.text));
    const repeatsId = isShown && piece.id === known.id;
    if (piece.index === index && said === named && !isMinted && !repeatsId) return piece;
    const { id: _, ...rest } = piece;
    return {
      ...(isMinted || repeatsId ? rest : piece),
      index,
      // Clients concatenate the pieces of an id, so an id is sent once.
      ...(isMinted && !isShown && { id: known.id, type: kindOf(piece) }),
      ...(said && { [member]: said }),
    };
  }

  /** Returns the place of a piece's call; after the last one where it begins another. */
  private placeOf(call: Fields, name: string): number {
    const { index } = call;
    const id = idOf(call);
    const found = this.find({ index, id });
    const known = this.calls[found];
    return known === undefined || (name !== "" && isAnother(known, { index, id }))
      ? this.calls.length
      : found;
  }

  private added(call: Fields, responseId: string): KnownCall {
    const id = idOf(call);
    const known: KnownCall = {
      came: call.index,
      id: id === "" ? mintedCallId(responseId, this.calls.length) : id,
      isMinted: id === "",
      name: new CallName(this.declared),
      isShown: false,
      held: undefined,
    };
    this.calls.push(known);
    return known;
  }

  private find({ index, id }: { index: unknown; id: string }): number {
    if (typeof index === "number") return this.calls.findLastIndex(({ came }) => came === index);
    return id === "" ? this.calls.length - 1 : this.calls.findIndex((call) => call.id === id);
  }
}

/** Returns the member of a piece that has name and arguments. */
const memberOf = ({ custom }: Fields): "function" | "custom" =>
  custom === undefined ? "function" : "custom";

/** Returns what a piece says of its call's name, and whether its arguments have begun. */
function saidOf(piece: Fields): { name: string; text: string } {
  const { name, arguments: json, input } = fieldsOf(piece[memberOf(piece)]) ?? {};
  const given = json ?? input ?? "";
  return {
    name: typeof name === "string" ? name : "",
    text: typeof given === "string" ? given : JSON.stringify(given),
  };
}

/** Returns the next piece of a call with what came before it. Nothing of the arguments had come. */
function joined(held: Fields, next: Fields): Fields {
  const member = memberOf(held);
  return { ...next, ...held, [member]: { ...fieldsOf(held[member]), ...fieldsOf(next[member]) } };
}

const inText = (named: Fields): Fields =>
  fieldsOf(named.arguments) === undefined ? named : argued(named);

/** Returns what a call's first piece says, with the whole name; the same where nothing changes. */
function saidFirst(named: Fields, name: string): Fields {
  const said = inText(named);
  return name === "" || said.name === name ? said : { ...said, name };
}

/** Returns what a later piece says, without a name that repeats that of the first. */
function saidAfter(named: Fields, name: string): Fields {
  const said = inText(named);
  if (said.name !== name) return said;
  const { name: _, ...rest } = said;
  return rest;
}

/**
 * Returns whether a piece with a name begins a new call, although its index or id is that of a
 * known one.
 */
const isAnother = (known: KnownCall, { index, id }: { index: unknown; id: string }): boolean =>
  known.name.isWhole &&
  (id === "" ? typeof index !== "number" : !known.isMinted && known.id !== id);

/** The calls of one choice of a stream. */
export interface ChoiceCalls {
  places: CallPlaces;
  /** The places of the older field, which has one call. */
  legacyPlace: CallPlaces;
}

/** Returns the delta with its calls placed, without those that are held back. */
export function placedCalls(
  delta: Fields,
  { places, legacyPlace }: ChoiceCalls,
  responseId: string,
): Fields {
  const { tool_calls: calls, function_call: legacy, ...rest } = delta;
  const shownCalls = Array.isArray(calls) ? places.placed(calls, responseId) : calls;
  const shownLegacy =
    fieldsOf(legacy) === undefined
      ? legacy
      : fieldsOf(legacyPlace.placed([{ index: 0, function: legacy }], responseId)[0])?.function;
  if (shownCalls === calls && shownLegacy === legacy) return delta;
  return {
    ...rest,
    ...(Array.isArray(shownCalls) && shownCalls.length > 0 && { tool_calls: shownCalls }),
    ...(shownLegacy !== undefined && { function_call: shownLegacy }),
  };
}

/** Returns the delta with the pieces that were held back; the same where there are none. */
export function withRest(delta: Fields, { places, legacyPlace }: ChoiceCalls): Fields {
  const [rest, legacy] = [places.rest(), legacyPlace.rest()[0]?.function];
  if (rest.length === 0 && legacy === undefined) return delta;
  const calls = Array.isArray(delta.tool_calls) ? (delta.tool_calls as readonly unknown[]) : [];
  return {
    ...delta,
    ...(rest.length > 0 && { tool_calls: [...calls, ...rest] }),
    ...(legacy !== undefined && { function_call: legacy }),
  };
}
