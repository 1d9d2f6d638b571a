/** Ends that say nothing by themselves; an answer without content that ends in another way still tells its client why. */
const quietEnds: ReadonlySet<string> = new Set(["end_turn", "stop_sequence", "tool_use"]);

/** True for an end that needs content before it. */
export const isQuietEnd = (stopReason: string): boolean => quietEnds.has(stopReason);
