import type { Loss } from "../../canonical/loss.ts";
import { isForeignReasoning, openProvenance } from "../../canonical/reasoning.ts";
import { badRequest } from "../../dialects/request-fields.ts";

type Item = Readonly<Record<string, unknown>>;

/** Input items as one provider takes them. */
export interface ReplayedItems {
  /** Undefined where the client's own text can stay as it is. */
  items: readonly unknown[] | undefined;
  losses: readonly Loss[];
}

/**
 * Thoughts of earlier turns for the provider that is asked: its own ones without the gateway's mark,
 * none of another provider's, and no bare ids, since nothing is stored behind them. Throws `bad_request`
 * for a reference that nobody resolved.
 */
export function replayedItems(input: unknown, providerId: string): ReplayedItems {
  if (!Array.isArray(input)) return { items: undefined, losses: [] };
  const losses: Loss[] = [];
  let changed = false;
  const items = input.flatMap((value: unknown, index): unknown[] => {
    const item = Object(value) as Item;
    if (item.type === "item_reference")
      throw badRequest(
        `input[${index}]`,
        "names an item that is not stored here; send the item itself.",
      );
    const replayed = item.type === "reasoning" ? replayedThought(item, providerId) : item;
    if (replayed === item) return [value];
    changed = true;
    if (typeof replayed !== "string") return [replayed];
    losses.push({ field: `input[${index}]`, reason: replayed });
    return [];
  });
  return { items: changed ? items : undefined, losses };
}

/** The thought itself, a changed one, or why there is none. */
function replayedThought(item: Item, providerId: string): Item | string {
  const { encrypted_content: sealed, id: _id, ...rest } = item;
  if (typeof sealed !== "string" || sealed === "") {
    if (!isReadable(item)) return "an id without its content";
    return item.id === undefined ? item : rest;
  }
  const { seal, provenance } = openProvenance(sealed);
  if (provenance === undefined) return item;
  return isForeignReasoning({ provenance }, providerId)
    ? "sealed by another provider"
    : { ...item, encrypted_content: seal };
}

const isReadable = ({ summary, content }: Item): boolean =>
  (Array.isArray(summary) && summary.length > 0) || (Array.isArray(content) && content.length > 0);
