import type { Provider } from "./model.ts";

/** Root-relative path of a provider's logo. */
export const providerLogoPath = (providerId: string): string => `/logos/${providerId}.svg`;

/**
 * A monogram in place of the vendor's trade mark, which is not ours to ship: its initials on a colour of
 * its own. Safe to serve as it is, since every character of the name is escaped.
 */
export function providerLogoSvg({ id, name }: Pick<Provider, "id" | "name">): string {
  const hue = [...id].reduce(
    (sum, character) => (sum * 31 + (character.codePointAt(0) ?? 0)) % 360,
    7,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" role="img" aria-label="${escapeXml(name)}">`,
    `<rect width="64" height="64" rx="14" fill="hsl(${hue} 45% 36%)"/>`,
    '<text x="32" y="41" text-anchor="middle" font-family="system-ui, sans-serif" font-size="26"',
    ` font-weight="600" fill="#fff">${escapeXml(initials(name))}</text></svg>`,
  ].join("");
}

function initials(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
  const letters =
    words.length > 1 ? words.slice(0, 2).map((word) => word[0]) : [words[0]?.slice(0, 2)];
  return letters.join("").toUpperCase();
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

const escapeXml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => entities[character] ?? "");
