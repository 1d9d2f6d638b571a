import { mark } from "../pages/page.ts";
import { brand } from "../platform/kernel/brand.ts";
import type { OperationPage, TagPage } from "./api-pages.ts";
import { groupsOf, type PageEntry, type Section } from "./contents.ts";

/** A section of the site: its pages, and for the API the operations below each. */
export interface SiteSection extends Section {
  pages: readonly (PageEntry & Partial<Pick<TagPage, "operations">>)[];
}

/** A link of the site. */
interface SiteLink {
  href: string;
  title: string;
}

/** What a page shows within the frame of the site. */
export interface FramedPage {
  title: string;
  /** The address of the page. */
  current: string;
  /** The address of the page as Markdown. */
  source: string;
  /** The content of the article. */
  html: string;
  /** Parts of the page, for the list beside it. */
  parts?: readonly { id: string; text: string }[];
  /** Whether the page is one that people begin at, with room for columns. */
  isWide?: boolean;
  /** Whether the blocks of code of the page are the same request in several languages. */
  hasLanguages?: boolean;
}

const escape = Bun.escapeHTML;

/** Returns the address of an operation's page. */
export const operationAddress = ({ slug }: Pick<OperationPage, "slug">): string =>
  `/docs/api/${slug}`;

/** Returns a method and path, the method with its own colour. */
export const routeName = ({ method, path }: Pick<OperationPage, "method" | "path">): string =>
  `<span class="verb ${method.toLowerCase()}">${method}</span> <code>${escape(path)}</code>`;

const currentMark = (href: string, current: string): string =>
  href === current ? ' aria-current="page"' : "";

/** Returns the operations of the current page's tag, below its entry. */
function operationList(operations: readonly OperationPage[], current: string): string {
  const links = operations.map(
    (each) =>
      `<li><a href="${operationAddress(each)}"${currentMark(operationAddress(each), current)}>${routeName(each)}</a></li>`,
  );
  return `<ul class="operations">${links.join("")}</ul>`;
}

function navigationEntry(
  section: string,
  page: SiteSection["pages"][number],
  current: string,
): string {
  const href = `/docs/${section}/${page.slug}`;
  const operations = page.operations ?? [];
  const isOpen =
    operations.length > 0 &&
    (href === current || operations.some((each) => operationAddress(each) === current));
  const link = `<a href="${href}"${currentMark(href, current)}>${escape(page.label ?? page.title)}</a>`;
  return `<li>${link}${isOpen ? operationList(operations, current) : ""}</li>`;
}

const navigation = (sections: readonly SiteSection[], current: string): string =>
  sections
    .map((section) => {
      const groups = groupsOf(section).map(({ title, pages }) => {
        const links = pages.map((page) => navigationEntry(section.slug, page, current)).join("");
        return `${title === "" ? "" : `<h3>${escape(title)}</h3>`}<ul>${links}</ul>`;
      });
      return `<h2>${escape(section.title)}</h2>${groups.join("")}`;
    })
    .join("\n");

/** Returns the pages in the order of the navigation, or the operations of the page's tag. */
function orderAround(sections: readonly SiteSection[], current: string): SiteLink[] {
  const tag = sections
    .flatMap(({ pages }) => pages)
    .find(({ operations = [] }) => operations.some((each) => operationAddress(each) === current));
  if (tag !== undefined)
    return (tag.operations ?? []).map((each) => ({
      href: operationAddress(each),
      title: each.name,
    }));
  return sections.flatMap((section) =>
    groupsOf(section)
      .flatMap(({ pages }) => pages)
      .map(({ slug, title }) => ({ href: `/docs/${section.slug}/${slug}`, title })),
  );
}

/** Returns links to the pages before and after the current one. */
function neighbours(sections: readonly SiteSection[], current: string): string {
  const pages = orderAround(sections, current);
  const at = pages.findIndex(({ href }) => href === current);
  const link = (page: SiteLink | undefined, rel: string, label: string): string =>
    page === undefined
      ? "<span></span>"
      : `<a rel="${rel}" href="${page.href}">${label}: ${escape(page.title)}</a>`;
  return at < 0
    ? ""
    : `<nav class="turn" aria-label="Pages">${link(pages[at - 1], "prev", "Previous")}${link(pages[at + 1], "next", "Next")}</nav>`;
}

const partList = (parts: readonly { id: string; text: string }[]): string =>
  parts.length < 2
    ? ""
    : `<nav class="toc" aria-label="On this page"><h2>On this page</h2><ul>${parts
        .map(({ id, text }) => `<li><a href="#${id}">${escape(text)}</a></li>`)
        .join("")}</ul></nav>`;

/** Returns a page of the site as an HTML document, which can be read without its script. */
export function sitePage(page: FramedPage, sections: readonly SiteSection[]): string {
  const { title, current, source, html, parts = [], isWide = false, hasLanguages = false } = page;
  const kinds = [...(isWide ? ["wide"] : []), ...(hasLanguages ? ["languages"] : [])].join(" ");
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)} - ${brand.productName} documentation</title><link rel="icon" href="/favicon.svg" type="image/svg+xml">
<link rel="alternate" type="text/markdown" href="${source}"><link rel="stylesheet" href="/docs/site/site.css">
<script src="/docs/site/theme.js"></script><script src="/docs/site/site.js" defer></script></head>
<body${kinds === "" ? "" : ` class="${kinds}"`}><a class="skip" href="#content">Skip to the content</a>
<header><a class="brand" href="/docs">${mark}${brand.productName}</a>
<div class="search"><input id="search" type="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off"
role="combobox" aria-expanded="false" aria-controls="results"><ul id="results" role="listbox" aria-label="Results" hidden></ul></div>
<button id="theme" type="button">Theme</button></header>
<div class="columns"><details class="menu" id="menu"><summary>Menu</summary>
<nav aria-label="Documentation">${navigation(sections, current)}</nav></details>
<main id="content"><article>${html}</article>${neighbours(sections, current)}
<p class="source"><a href="${source}">This page as Markdown</a></p></main>${partList(parts)}</div></body></html>
`;
}
