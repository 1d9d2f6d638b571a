import { mark } from "../pages/mark.ts";
import { brand } from "../platform/lib/brand.ts";
import type { Section } from "./contents.ts";
import type { RenderedPage } from "./render-markdown.ts";

const navigation = (sections: readonly Section[], current: string): string =>
  sections
    .map(({ slug, title, pages }) => {
      const links = pages.map((page) => {
        const href = `/docs/${slug}/${page.slug}`;
        return `<li><a href="${href}"${href === current ? ' aria-current="page"' : ""}>${Bun.escapeHTML(page.title)}</a></li>`;
      });
      return `<h2>${Bun.escapeHTML(title)}</h2><ul>${links.join("")}</ul>`;
    })
    .join("\n");

/** Pages before and after the current one, in the order of the navigation. */
function neighbours(sections: readonly Section[], current: string): string {
  const pages = sections.flatMap(({ slug, pages: inner }) =>
    inner.map(({ slug: page, title }) => ({ href: `/docs/${slug}/${page}`, title })),
  );
  const at = pages.findIndex(({ href }) => href === current);
  const link = (
    page: { href: string; title: string } | undefined,
    rel: string,
    label: string,
  ): string =>
    page === undefined
      ? "<span></span>"
      : `<a rel="${rel}" href="${page.href}">${label}: ${Bun.escapeHTML(page.title)}</a>`;
  return at < 0
    ? ""
    : `<nav class="turn" aria-label="Pages">${link(pages[at - 1], "prev", "Previous")}${link(pages[at + 1], "next", "Next")}</nav>`;
}

/** A page of the site as an HTML document; it works without its script, but for the search. */
export function sitePage(
  { html, headings }: RenderedPage,
  { title, current, sections }: { title: string; current: string; sections: readonly Section[] },
): string {
  const onPage = headings.filter(({ depth }) => depth === 2);
  const toc =
    onPage.length < 2
      ? ""
      : `<nav class="toc" aria-label="On this page"><h2>On this page</h2><ul>${onPage
          .map(({ id, text }) => `<li><a href="#${id}">${Bun.escapeHTML(text)}</a></li>`)
          .join("")}</ul></nav>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${Bun.escapeHTML(title)} - ${brand.productName} documentation</title><link rel="icon" href="/favicon.svg" type="image/svg+xml">
<link rel="alternate" type="text/markdown" href="${current}.md"><link rel="stylesheet" href="/docs/site/site.css">
<script src="/docs/site/theme.js"></script><script src="/docs/site/site.js" defer></script></head>
<body><a class="skip" href="#content">Skip to the content</a>
<header><a class="brand" href="/docs">${mark}${brand.productName}</a>
<div class="search"><input id="search" type="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off"
role="combobox" aria-expanded="false" aria-controls="results"><ul id="results" role="listbox" aria-label="Results" hidden></ul></div>
<button id="theme" type="button">Theme</button></header>
<div class="columns"><details class="menu" id="menu"><summary>Menu</summary>
<nav aria-label="Documentation">${navigation(sections, current)}</nav></details>
<main id="content"><article>${html}</article>${neighbours(sections, current)}
<p class="source"><a href="${current}.md">This page as Markdown</a></p></main>${toc}</div></body></html>
`;
}
