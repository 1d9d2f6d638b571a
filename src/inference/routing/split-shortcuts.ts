import { GatewayError } from "../../platform/lib/errors.ts";
import type { SortKey } from "./provider-preferences.ts";

/** A model id without its suffix shortcuts, and what they stand for. */
export interface SplitId {
  base: string;
  sort: SortKey | undefined;
  /** Tokens. */
  minContext: number | undefined;
}

const sorts: Readonly<Record<string, SortKey>> = {
  nitro: "throughput",
  floor: "price",
  fast: "latency",
  exacto: "exacto",
};

/** Minimum context in brackets, such as `[1m]` or `[500k]`. */
const contextEnding = /\[(\d{1,9})([km])\]$/i;

const tokensOf = { k: 1_000, m: 1_000_000 } as const;

/**
 * Takes the shortcuts off an id, in whatever order and case they stand: `service/auto[1m]:exacto` is
 * `service/auto` with a sort and a minimum. Throws `bad_request` where two of them contradict each other.
 */
export function splitShortcuts(id: string): SplitId {
  const split: SplitId = { base: id, sort: undefined, minContext: undefined };
  // `:free` is part of the id itself, and other shortcuts may stand before it.
  let isFree = false;
  for (;;) {
    const { base } = split;
    const context = base.endsWith("]") ? contextEnding.exec(base) : null;
    const start = context?.index ?? base.lastIndexOf(":");
    const word = context === null && start >= 0 ? base.slice(start + 1).toLowerCase() : "";
    if (context !== null) split.minContext = once(id, split.minContext, contextOf(context));
    else if (Object.hasOwn(sorts, word)) split.sort = once(id, split.sort, sorts[word]);
    else if (word === "free" && !isFree) isFree = true;
    else break;
    split.base = base.slice(0, start);
  }
  if (isFree) split.base += ":free";
  return split;
}

function contextOf([, digits, unit = ""]: RegExpExecArray): number {
  return Number(digits) * tokensOf[unit.toLowerCase() as keyof typeof tokensOf];
}

function once<T>(id: string, known: T | undefined, read: T): T {
  if (known === undefined || known === read) return read;
  throw new GatewayError(
    "bad_request",
    `The suffixes of ${JSON.stringify(id)} contradict each other.`,
    { param: "model" },
  );
}
