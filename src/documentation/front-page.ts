import { brand } from "../platform/kernel/brand.ts";
import { groupsOf, type PageEntry } from "./contents.ts";
import type { FramedPage, SiteSection } from "./site-frame.ts";

const escape = Bun.escapeHTML;

/** Where readers begin: the page, and whom it is for. */
const beginnings: readonly (readonly [href: string, title: string, text: string])[] = [
  [
    "/docs/start/quickstart",
    "Quickstart",
    "Start a gateway, make a key and send the first request.",
  ],
  [
    "/docs/start/for-developers",
    "For developers",
    "You have an address and a key. Connect a client or an SDK.",
  ],
  [
    "/docs/start/for-teams",
    "For teams",
    "Invite colleagues, give each a key with a cap, see what is spent.",
  ],
  [
    "/docs/start/for-operators",
    "For operators",
    "Add providers, run the gateway in production, watch it.",
  ],
];

const linkList = (section: string, pages: readonly PageEntry[]): string =>
  `<ul>${pages
    .map(
      ({ slug, title, label }) =>
        `<li><a href="/docs/${section}/${slug}">${escape(label ?? title)}</a></li>`,
    )
    .join("")}</ul>`;

/** Returns a heading with one card for each group of the section's pages. */
function sectionCards(section: SiteSection): string {
  const groups = groupsOf(section);
  const cards = groups.map(({ title, pages }) => {
    const heading = title === "" ? "" : `<h3>${escape(title)}</h3>`;
    return `<div class="group">${heading}${linkList(section.slug, pages)}</div>`;
  });
  const kind = groups.length > 1 ? "groups" : "groups single";
  return `<h2>${escape(section.title)}</h2><div class="${kind}">${cards.join("")}</div>`;
}

/** Returns the first page of the site: where to begin, and every page by its subject. */
export function frontPage(
  sections: readonly SiteSection[],
  { summary, publicUrl }: { summary: string; publicUrl: string },
): FramedPage {
  const cards = beginnings.map(
    ([href, title, text]) =>
      `<a class="begin" href="${href}"><strong>${title}</strong><span>${text}</span></a>`,
  );
  const request = [
    `curl ${publicUrl}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \\`,
    `  -d '{"model": "sandbox/chat:free", "messages": [{"role": "user", "content": "Hello"}]}'`,
  ].join("\n");
  const rest = sections.filter(({ slug }) => slug !== "start").map(sectionCards);
  return {
    title: "Documentation",
    current: "/docs",
    source: "/llms.txt",
    isWide: true,
    html: `<h1>${brand.productName} documentation</h1><p class="lead">${escape(summary)}</p>
<div class="beginnings">${cards.join("")}</div>
<pre tabindex="0" data-language="sh"><code>${escape(request)}</code></pre>
${rest.join("\n")}`,
  };
}

/** Returns the page for an address that the site does not have, with the pages closest to it. */
export function missingPage(sections: readonly SiteSection[], path: string): FramedPage {
  const words = path.split(/[^a-z0-9]+/i).filter((word) => word.length > 2);
  const close = sections
    .flatMap(({ slug, pages }) => pages.map((page) => ({ section: slug, page })))
    .filter(({ page }) => words.some((word) => page.slug.includes(word.toLowerCase())))
    .slice(0, 6);
  const suggestions = close.map(
    ({ section, page }) =>
      `<li><a href="/docs/${section}/${page.slug}">${escape(page.title)}</a></li>`,
  );
  return {
    title: "No such page",
    current: "",
    source: "/llms.txt",
    isWide: true,
    html: `<h1>No such page</h1><p class="lead">The documentation has no page at <code>/docs/${escape(path)}</code>.</p>
${suggestions.length === 0 ? "" : `<p>Pages with a similar name:</p><ul>${suggestions.join("")}</ul>`}
<p>Search with the field above, or begin at <a href="/docs">the first page</a>.</p>`,
  };
}
