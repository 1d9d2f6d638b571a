import type { Page } from "playwright-core";

/**
 * Sizes at which every screen is looked at: a phone, a laptop whose page is zoomed to 200 %, a
 * tablet, a small laptop, a usual and a wide screen.
 */
export const sizes = [
  { width: 390, height: 844 },
  { width: 640, height: 400 },
  { width: 768, height: 1024 },
  { width: 1024, height: 768 },
  { width: 1440, height: 900 },
  { width: 1920, height: 1080 },
] as const;
/** Below this height the head of a page may fill half of the window. */
const tallEnough = 600;

/**
 * Looks at a page as an eye would: text that is cut off or covered, tables and charts without
 * height, content that begins below the first half of the window. Runs in the browser, and returns
 * findings as text.
 */
export const geometryScript = `(() => {
  const findings = [];
  const nameOf = (element) => element.tagName.toLowerCase() + " " +
    JSON.stringify((element.getAttribute("aria-label") || element.textContent || "").trim().slice(0, 40));
  const isSeen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const hides = (style) => style.overflowX === "hidden" || style.overflowX === "clip";
  // What is asked of one element many times at one size is looked up once.
  const once = (look) => {
    const known = new Map();
    return (element) => {
      if (!known.has(element)) known.set(element, look(element));
      return known.get(element);
    };
  };
  const cutsOff = once((frame) => {
    const style = getComputedStyle(frame);
    return hides(style) && style.textOverflow !== "ellipsis" && frame.scrollWidth > frame.clientWidth + 1 && frame.clientWidth > 1;
  });
  const isStuck = (element) => {
    for (let each = element; each; each = each.parentElement)
      if (["sticky", "fixed"].includes(getComputedStyle(each).position)) return true;
    return false;
  };
  const leaves = [...document.querySelectorAll("main *")].filter((element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "") &&
    isSeen(element) && !["OPTION", "SCRIPT", "STYLE", "TITLE"].includes(element.tagName) && !element.closest("svg"));
  for (const leaf of leaves) {
    const box = leaf.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) continue;
    for (let frame = leaf; frame && frame.tagName !== "MAIN"; frame = frame.parentElement)
      if (cutsOff(frame)) findings.push("cut off: " + nameOf(leaf));
    const x = box.left + Math.min(box.width / 2, 40);
    const y = box.top + box.height / 2;
    if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
    const top = document.elementFromPoint(x, y);
    const isOnTop = top === null || leaf.contains(top) || top.contains(leaf) || isStuck(top);
    if (!isOnTop) findings.push("covered by " + nameOf(top) + ": " + nameOf(leaf));
  }
  for (const element of document.querySelectorAll("main table, main form, main [role=img]")) {
    if (!isSeen(element)) continue;
    if (element.getBoundingClientRect().height < 4) findings.push("without height: " + nameOf(element));
  }
  for (const table of document.querySelectorAll("main table")) {
    const frame = table.parentElement;
    const isScrolled = getComputedStyle(frame).overflowX !== "visible";
    if (!isScrolled && isSeen(table) && table.offsetWidth > frame.clientWidth + 1)
      findings.push("wider than its card: " + nameOf(table));
  }
  for (const element of document.querySelectorAll("main *")) {
    const style = getComputedStyle(element);
    const isCut = style.overflowY === "hidden" && element.scrollHeight > element.clientHeight + 2;
    if (isCut && isSeen(element) && element.clientHeight > 1 && style.textOverflow !== "ellipsis" &&
      style.webkitLineClamp === "none" && !element.closest("svg"))
      findings.push("lower than its content: " + nameOf(element));
  }
  const main = "main section, main form, main table, main [class^=stats]";
  const first = [...document.querySelectorAll(main)].find((element) => isSeen(element) && !isStuck(element));
  if (first && first.getBoundingClientRect().top + scrollY > innerHeight / 2)
    findings.push("begins in the lower half: " + nameOf(first));
  // Buttons of what is empty look plain, since the head of the page has them too.
  const isMain = "main [class*=button]:not([class*=plain], [class*=danger], [class*=empty] *)";
  const primary = [...document.querySelectorAll(isMain)].filter(isSeen);
  if (primary.length > 1) findings.push("more than one main action: " + primary.map(nameOf).join(", "));
  const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (over > 0) findings.push("scrolls sideways by " + over);
  return [...new Set(findings)];
})()`;

/** Returns what is wrong to the eye at the size that the window has. */
export async function lookedAt(page: Page): Promise<string[]> {
  const { width = 0, height = 0 } = page.viewportSize() ?? {};
  const found: unknown = await page.evaluate(geometryScript);
  if (!Array.isArray(found)) return [];
  return found
    .map(String)
    .filter((finding) => height > tallEnough || !finding.startsWith("begins in"))
    .map((finding) => `${width}: ${finding}`);
}

/** Returns what is wrong to the eye at each size, and goes back to the size before where that is asked. */
export async function geometryFindings(
  page: Page,
  looked: readonly (typeof sizes)[number][] = sizes,
  comesBack = true,
): Promise<string[]> {
  const before = page.viewportSize();
  const findings: string[] = [];
  for (const size of looked) {
    await page.setViewportSize(size);
    await page.evaluate(
      "new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))",
    );
    findings.push(...(await lookedAt(page)));
  }
  if (before !== null && comesBack) await page.setViewportSize(before);
  return findings;
}
