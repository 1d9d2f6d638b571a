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
  isNamed: boolean;
}

/**
 * Adds to the calls of one choice what clients need to put the pieces together: an index, counted
 * from 0, and an id in the first piece. Some servers omit these, and some send the same ones for
 * all calls.
 */
export class CallPlaces {
  private readonly calls: KnownCall[] = [];

  /**
   * Returns the calls of a delta with their indexes, or the same list where they have them already.
   */
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
      // Clients concatenate the pieces of an id, so an id of the gateway is sent once.
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

/**
 * Returns whether a piece with a name begins a new call, although its index or id is that of a
 * known one.
 */
const isAnother = (known: KnownCall, { index, id }: { index: unknown; id: string }): boolean =>
  known.isNamed && (id === "" ? typeof index !== "number" : !known.isMinted && known.id !== id);
