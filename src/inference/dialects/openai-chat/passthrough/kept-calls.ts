import { mintedCallId } from "../decode-response.ts";

/** An object of an answer, whose members are looked at one by one. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object; undefined where it is none. */
export const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : undefined;

/**
 * The message whose calls all have an id and arguments that are JSON text: for a tool without
 * parameters some servers write none, and clients parse what is there.
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

/** The list with each value changed; the same list where none is. */
function eachKept(
  values: readonly unknown[],
  change: (value: unknown, position: number) => unknown,
): readonly unknown[] {
  const changed = values.map(change);
  return changed.some((value, position) => value !== values[position]) ? changed : values;
}

/** A call of a stream, as far as its pieces have come. */
interface KnownCall {
  /** `index` as its provider counts. */
  came: unknown;
  id: string;
  /** The id is ours, since the call began without one. */
  isMinted: boolean;
  isNamed: boolean;
}

/**
 * Gives the calls of one choice what clients put their pieces together by: a place, counted from 0,
 * and an id in the first piece. Some servers leave them out, and some give all calls the same.
 */
export class CallPlaces {
  private readonly calls: KnownCall[] = [];

  /** The calls of a delta with their places; the same list where they have them. */
  placed(calls: readonly unknown[], responseId: string): readonly unknown[] {
    return eachKept(calls, (call) => {
      const fields = fieldsOf(call);
      return fields === undefined ? call : this.piece(fields, responseId);
    });
  }

  private piece(fields: Fields, responseId: string): Fields {
    const began = this.calls.length;
    const index = this.placeOf(fields, responseId);
    const known = this.calls[index];
    const named = fieldsOf(fields.function);
    const isWhole = fieldsOf(named?.arguments) !== undefined;
    const isMinted = known?.isMinted === true;
    if (fields.index === index && !isWhole && !isMinted) return fields;
    const { id: _, ...rest } = fields;
    return {
      ...(isMinted ? rest : fields),
      index,
      // Clients concatenate the pieces of an id, so ours is sent once.
      ...(isMinted && index === began && { id: known.id, type: kindOf(fields) }),
      ...(named && isWhole && { function: argued(named) }),
    };
  }

  private placeOf(call: Fields, responseId: string): number {
    const { index } = call;
    const id = idOf(call);
    const { name } = fieldsOf(call.function) ?? fieldsOf(call.custom) ?? {};
    const isNamed = typeof name === "string" && name !== "";
    const found = this.find({ index, id });
    const known = this.calls[found];
    if (known === undefined || (isNamed && isAnother(known, { index, id }))) {
      const ownId = id === "" ? mintedCallId(responseId, this.calls.length) : id;
      return this.calls.push({ came: index, id: ownId, isMinted: id === "", isNamed }) - 1;
    }
    known.isNamed ||= isNamed;
    return found;
  }

  private find({ index, id }: { index: unknown; id: string }): number {
    if (typeof index === "number") return this.calls.findLastIndex(({ came }) => came === index);
    return id === "" ? this.calls.length - 1 : this.calls.findIndex((call) => call.id === id);
  }
}

/** Whether a piece with a name of its own begins a call, though its place or id is a known one's. */
const isAnother = (known: KnownCall, { index, id }: { index: unknown; id: string }): boolean =>
  known.isNamed && (id === "" ? typeof index !== "number" : !known.isMinted && known.id !== id);
