import { picoPerTokenFromUsdPerMillion } from "../../platform/lib/money.ts";
import type { CatalogFacts, FactPrices, FactRow } from "./catalog-facts.ts";

/** What a refresh changes, each row as `provider id`. */
export interface FactsChange {
  added: string[];
  removed: string[];
  changed: string[];
  /** Prices that moved by more than half, in words. */
  priceMoves: string[];
}

/** Compares two states of the facts row by row. */
export function compareFacts(before: CatalogFacts, after: CatalogFacts): FactsChange {
  const old = new Map(before.rows.map((row) => [rowKey(row), row]));
  const fresh = new Map(after.rows.map((row) => [rowKey(row), row]));
  const change: FactsChange = { added: [], removed: [], changed: [], priceMoves: [] };
  for (const key of old.keys()) if (!fresh.has(key)) change.removed.push(key);
  for (const [key, row] of fresh) {
    const previous = old.get(key);
    if (previous === undefined) change.added.push(key);
    else if (!Bun.deepEquals(previous, row)) {
      change.changed.push(key);
      change.priceMoves.push(...priceMoves(key, previous, row));
    }
  }
  return change;
}

const rowKey = ({ provider, id }: FactRow): string => `${provider} ${id}`;

function priceMoves(key: string, before: FactRow, after: FactRow): string[] {
  const moves = movesOf(key, before.prices, after.prices);
  for (const { above, prices } of after.tiers ?? []) {
    const previous = before.tiers?.find((tier) => tier.above === above)?.prices;
    moves.push(...movesOf(`${key} above ${above} tokens`, previous, prices));
  }
  return moves;
}

/** A part that only one side prices did not move: its fallback did, and that is compared too. */
function movesOf(
  key: string,
  before: FactPrices | undefined,
  after: FactPrices | undefined,
): string[] {
  if (before === undefined || after === undefined) return [];
  const parts = Object.keys(after) as (keyof FactPrices)[];
  return parts.flatMap((part) => {
    const [from, to] = [before[part], after[part]];
    const moved = from !== undefined && to !== undefined && isLargeMove(from, to);
    return moved ? [`${key}: ${part} ${from} -> ${to}`] : [];
  });
}

/** Up or down by more than half of what it was. */
function isLargeMove(from: string, to: string): boolean {
  const before = picoPerTokenFromUsdPerMillion(from) ?? 0n;
  const after = picoPerTokenFromUsdPerMillion(to) ?? 0n;
  const distance = after > before ? after - before : before - after;
  return distance * 2n > before;
}
