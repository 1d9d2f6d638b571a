import { editMembers } from "../../../../platform/kernel/json/json-members.ts";
import { isAsked, withoutId } from "./passthrough.ts";
import type { Unreadable, UnsealedRequest } from "../../shared/refused-thoughts.ts";

type Item = Readonly<Record<string, unknown>>;

/** OpenAI's code, and its words where the code is missing, as at Azure. */
const refusedCode = "invalid_encrypted_content";
const refusedWords = /encrypted[ _]content.{0,200}could not be (?:verified|decrypted)/is;

/**
 * Returns a request without what another account sealed: OpenAI's organisations and Azure's
 * resources read only their own. The turn under way keeps its reasoning, unless the refusal names it
 * or no other is sealed. What follows an item that is left out has no id. In place of a summary of
 * earlier turns the model gets a note that it is missing.
 */
export function withoutSeals(text: string, unreadable: Unreadable): UnsealedRequest | undefined {
  if ("refusal" in unreadable) {
    const { code, message } = unreadable.refusal;
    if (code !== refusedCode && !refusedWords.test(message)) return undefined;
  }
  const { input } = JSON.parse(text) as Item;
  if (!Array.isArray(input)) return undefined;
  const items = input.map((value: unknown) => Object(value) as Item);
  const sealed = items.filter((item) => sealOf(item) !== undefined);
  const gone =
    "refusal" in unreadable
      ? refusedOf(items, { sealed, message: unreadable.refusal.message })
      : new Set(sealed.filter((item) => unreadable.isRefused(sealOf(item) ?? "")));
  if (gone.size === 0) return undefined;
  let thoughtIsGone = false;
  const kept = input.flatMap((value: unknown, index): unknown[] => {
    const item = items[index] ?? {};
    if (item["type"] === "reasoning" || isAsked(item)) thoughtIsGone = gone.has(item);
    if (gone.has(item)) return isSummary(item) ? [missingHistory] : [];
    return [thoughtIsGone && typeof value === "object" ? withoutId(item) : value];
  });
  return {
    text: editMembers(text, new Map([["input", JSON.stringify(kept)]])),
    seals: [...gone].map((item) => sealOf(item) ?? ""),
    stopsThinking: false,
    lacksHistory: [...gone].some(isSummary),
  };
}

/** What stands in place of a summary of earlier turns. */
const missingHistory: Item = {
  type: "message",
  role: "developer",
  content: "A summary of the earlier conversation belongs here. It cannot be read any more.",
};

/** Returns whether an item is what an account has compacted earlier turns to. */
const isSummary = ({ type }: Item): boolean =>
  type === "compaction" || type === "compaction_summary";

/**
 * Returns the items to leave out: those of earlier turns, or all of them. A summary goes where the
 * refusal names one, or nothing.
 */
function refusedOf(
  items: readonly Item[],
  { sealed, message }: { sealed: readonly Item[]; message: string },
): ReadonlySet<Item> {
  const turn = new Set(items.slice(items.findLastIndex(isAsked) + 1));
  const named = sealed.filter((item) => names(message, item));
  const suspected = sealed.filter((item) => !isSummary(item) || named.every(isSummary));
  const earlier = suspected.filter((item) => !turn.has(item) || isSummary(item));
  const isOfTurn =
    earlier.length === 0 || (named.length > 0 && named.every((item) => turn.has(item)));
  return new Set(isOfTurn ? suspected : earlier);
}

/** Returns the seal of an item; undefined where it has none. */
function sealOf(item: Item): string | undefined {
  const { type, encrypted_content: seal } = item;
  return (type === "reasoning" || isSummary(item)) && typeof seal === "string" && seal !== ""
    ? seal
    : undefined;
}

/** The ends of a seal, by which OpenAI names it: `gAAA...Rg==`. */
const sealEnds = /(\S{4,})\.\.\.(\S{4,})/;

/** Returns whether a refusal names an item, by its id or by the ends of its seal. */
function names(message: string, item: Item): boolean {
  const { id } = item;
  if (typeof id === "string" && id !== "" && message.includes(id)) return true;
  const seal = sealOf(item) ?? "";
  const [, head, tail] = sealEnds.exec(message) ?? [];
  return head !== undefined && tail !== undefined && seal.startsWith(head) && seal.endsWith(tail);
}
