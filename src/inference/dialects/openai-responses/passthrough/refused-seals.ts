import { editMembers } from "../../../../platform/kernel/json/json-members.ts";
import type { Refusal, UnsealedRequest } from "../../dialect.ts";
import { isAsked, withoutId } from "./passthrough.ts";

type Item = Readonly<Record<string, unknown>>;

/** OpenAI's code, and its words where the code is missing, as at Azure. */
const refusedCode = "invalid_encrypted_content";
const refusedWords = /encrypted[ _]content.{0,200}could not be (?:verified|decrypted)/is;

/**
 * Returns a request without the reasoning that another account sealed: OpenAI's organisations and
 * Azure's resources read only their own. The turn under way keeps its reasoning, unless the refusal
 * names it or no other is sealed. What follows an item that is left out has no id.
 */
export function withoutSeals(
  text: string,
  { code, message }: Refusal,
): UnsealedRequest | undefined {
  if (code !== refusedCode && !refusedWords.test(message)) return undefined;
  const { input } = JSON.parse(text) as Item;
  if (!Array.isArray(input)) return undefined;
  const items = input.map((value: unknown) => Object(value) as Item);
  const gone = refusedOf(items, message);
  if (gone.size === 0) return undefined;
  let thoughtIsGone = false;
  const kept = input.flatMap((value: unknown, index): unknown[] => {
    const item = items[index] ?? {};
    if (item["type"] === "reasoning" || isAsked(item)) thoughtIsGone = gone.has(item);
    if (gone.has(item)) return [];
    return [thoughtIsGone && typeof value === "object" ? withoutId(item) : value];
  });
  return {
    text: editMembers(text, new Map([["input", JSON.stringify(kept)]])),
    blocks: gone.size,
    stopsThinking: false,
  };
}

/** Returns the items to leave out. */
function refusedOf(items: readonly Item[], message: string): ReadonlySet<Item> {
  const turn = items.slice(items.findLastIndex(isAsked) + 1);
  const sealed = items.filter(isSealed);
  const earlier = sealed.filter((item) => !turn.includes(item));
  const isNamed = (item: Item): boolean => names(message, item);
  const isOfTurn = earlier.length === 0 || (turn.some(isNamed) && !earlier.some(isNamed));
  return new Set(isOfTurn ? sealed : earlier);
}

const isSealed = ({ type, encrypted_content: seal }: Item): boolean =>
  type === "reasoning" && typeof seal === "string" && seal !== "";

/** The ends of a seal, by which OpenAI names it: `gAAA...Rg==`. */
const sealEnds = /(\S{4,})\.\.\.(\S{4,})/;

/** Returns whether a refusal names an item, by its id or by the ends of its seal. */
function names(message: string, item: Item): boolean {
  if (!isSealed(item)) return false;
  const { id, encrypted_content: seal } = item;
  if (typeof id === "string" && id !== "" && message.includes(id)) return true;
  const [, head, tail] = sealEnds.exec(message) ?? [];
  return (
    head !== undefined &&
    tail !== undefined &&
    String(seal).startsWith(head) &&
    String(seal).endsWith(tail)
  );
}
