import type { Page } from "playwright-core";

/** How often texts of the same colours over the same grounds are looked at. */
const timesEach = 3;

/** How often each was looked at in this process without a finding, by its hash. */
const timesSeen = new Map<number, number>();

/**
 * Keeps in the page, as `freshTexts`, one text of each combination that decides about contrast:
 * colour, size, weight, opacity, the grounds behind it up to one that covers the others, and by
 * which part it is taken out of the flow, where one is. Gives their hashes.
 */
const findFresh = (enough: readonly number[]): string => `(() => {
  const enough = new Set(${JSON.stringify(enough)});
  const known = new Map([[null, { grounds: "", opacity: 1, place: "" }]]);
  const behind = (element) => {
    const before = known.get(element);
    if (before !== undefined) return before;
    const outer = behind(element.parentElement);
    const style = getComputedStyle(element);
    const own = style.backgroundColor === "rgba(0, 0, 0, 0)" && style.backgroundImage === "none"
      ? "" : style.backgroundColor + style.backgroundImage;
    const covers = style.backgroundColor.startsWith("rgb(");
    const isPlaced = style.position !== "static" && style.position !== "relative";
    const found = {
      grounds: (covers ? "" : outer.grounds) + own,
      opacity: outer.opacity * Number(style.opacity),
      place: isPlaced ? outer.place + " " + element.className : outer.place,
    };
    known.set(element, found);
    return found;
  };
  const hasText = (element) => element.matches("input, select, textarea") ||
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
  const isSeen = (element) => !element.matches(":disabled, :disabled *, [aria-disabled=true] *") &&
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    element.getClientRects().length > 0;
  const hash = (text) => {
    let sum = 2166136261;
    for (let index = 0; index < text.length; index += 1)
      sum = Math.imul(sum ^ text.charCodeAt(index), 16777619);
    return sum >>> 0;
  };
  const fresh = new Map();
  for (const element of document.body.querySelectorAll("*")) {
    if (!hasText(element)) continue;
    const { color, fontSize, fontWeight, textShadow } = getComputedStyle(element);
    const { grounds, opacity, place } = behind(element);
    const key = hash([color, fontSize, fontWeight, textShadow, grounds, opacity, place].join("|"));
    if (!enough.has(key) && !fresh.has(key) && isSeen(element)) fresh.set(key, element);
  }
  globalThis.freshTexts = [...fresh.values()];
  return [...fresh.keys()];
})()`;

/** Those texts as the part of a page that axe looks at. */
export const freshPart = "{ include: freshTexts }";

/** Finds the texts of a page whose colours were not looked at often enough in this process. */
export async function findFreshTexts(page: Page): Promise<readonly number[]> {
  const enough = [...timesSeen].filter(([, times]) => times >= timesEach).map(([key]) => key);
  const found: unknown = await page.evaluate(findFresh(enough));
  return found as readonly number[];
}

/** Counts texts whose contrast was looked at and found to be enough. */
export function countSeen(texts: readonly number[]): void {
  for (const key of texts) timesSeen.set(key, (timesSeen.get(key) ?? 0) + 1);
}
