/** An object of an answer, whose members are looked at one by one. */
export type Fields = Readonly<Record<string, unknown>>;

export const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : undefined;

/**
 * The message whose calls all have arguments that are JSON text: for a tool without parameters some
 * servers write none, and clients parse what is there.
 */
export function withArguments(message: Fields): Fields {
  const { tool_calls: calls, function_call: legacy } = message;
  const shownCalls = Array.isArray(calls) ? eachKept(calls, withFunctionArguments) : calls;
  const shownLegacy = fieldsOf(legacy) === undefined ? legacy : argued(legacy as Fields);
  return shownCalls === calls && shownLegacy === legacy
    ? message
    : {
        ...message,
        ...(shownCalls !== undefined && { tool_calls: shownCalls }),
        ...(shownLegacy !== undefined && { function_call: shownLegacy }),
      };
}

function withFunctionArguments(call: unknown): unknown {
  const fields = fieldsOf(call);
  const named = fieldsOf(fields?.function);
  if (named === undefined) return call;
  const shown = argued(named);
  return shown === named ? call : { ...fields, function: shown };
}

function argued(named: Fields): Fields {
  const { arguments: came } = named;
  if (typeof came === "string" && came.trim() !== "") return named;
  const isText = came === undefined || came === null || typeof came === "string";
  return { ...named, arguments: isText ? "{}" : JSON.stringify(came) };
}

/** The list with each value changed; the same list where none is. */
function eachKept(
  values: readonly unknown[],
  change: (value: unknown) => unknown,
): readonly unknown[] {
  const changed = values.map(change);
  return changed.some((value, position) => value !== values[position]) ? changed : values;
}

/**
 * Gives the calls of one choice the places that clients put their pieces together by, counted from
 * 0: some servers leave them out, and some give all calls the same.
 */
export class CallPlaces {
  private readonly calls: { came: unknown; id: string; isNamed: boolean }[] = [];

  /** The calls of a delta with their places; the same list where they have them. */
  placed(calls: readonly unknown[]): readonly unknown[] {
    return eachKept(calls, (call) => {
      const fields = fieldsOf(call);
      if (fields === undefined) return call;
      const index = this.placeOf(fields);
      const named = fieldsOf(fields.function);
      const isWhole = fieldsOf(named?.arguments) !== undefined;
      if (fields.index === index && !isWhole) return call;
      return { ...fields, index, ...(named && isWhole && { function: argued(named) }) };
    });
  }

  private placeOf(call: Fields): number {
    const { index, id } = call;
    const ownId = typeof id === "string" ? id : "";
    const { name } = fieldsOf(call.function) ?? fieldsOf(call.custom) ?? {};
    const isNamed = typeof name === "string" && name !== "";
    const found = this.find({ index, id: ownId });
    const known = found === -1 ? undefined : this.calls[found];
    const isAnother = ownId !== "" && known?.id !== ownId && isNamed && known?.isNamed === true;
    if (known === undefined || isAnother)
      return this.calls.push({ came: index, id: ownId, isNamed }) - 1;
    known.isNamed ||= isNamed;
    return found;
  }

  private find({ index, id }: { index: unknown; id: string }): number {
    if (typeof index === "number") return this.calls.findLastIndex(({ came }) => came === index);
    return id === "" ? this.calls.length - 1 : this.calls.findIndex((call) => call.id === id);
  }
}
