import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { mark, faviconSvg } from "../pages/page.ts";
import { brand } from "../platform/kernel/brand.ts";
import { writtenSections, type Section } from "./contents.ts";
import { generatedPages, type Facts } from "./generated-pages.ts";
import { renderMarkdown, type RenderedPage } from "./render-markdown.ts";

/** An entry of the search: a part of a page. */
interface SearchEntry {
  /** The address of the part. */
  id: string;
  title: string;
  page: string;
  keywords: string;
  text: string;
}

/** A file of the site. */
export interface SiteFile {
  type: string;
  text: string;
}

const types = {
  html: "text/html",
  markdown: "text/markdown",
  css: "text/css",
  script: "text/javascript",
  json: "application/json",
  text: "text/plain",
};
const file = (type: keyof typeof types, text: string): SiteFile => ({
  type: `${types[type]}; charset=utf-8`,
  text,
});

const summary =
  "Switchyard is an inference and account gateway that you run yourself: one API, compatible with OpenAI's and Anthropic's, " +
  "in front of many model providers, with keys, budgets and charges exact to the billionth of a dollar.";

/**
 * The documentation: hand-written pages from a folder, and pages generated from the program. Each
 * page is rendered on first use.
 */
export class DocumentationSite {
  readonly sections: readonly Section[];
  /** The OpenAPI document that the reference is generated from. */
  readonly openApi: Facts["openApi"];
  private readonly folder: string;
  private readonly generated: ReadonlyMap<string, string>;
  private readonly rendered = new Map<string, RenderedPage>();

  constructor(folder: string, facts: Facts) {
    this.folder = folder;
    this.openApi = facts.openApi;
    const pages = generatedPages(facts);
    this.generated = new Map(pages.map(({ slug, markdown }) => [`reference/${slug}`, markdown]));
    this.sections = [...writtenSections, { slug: "reference", title: "Reference", pages }];
  }

  /** Every page by its path below `/docs`, with its title. */
  get pages(): { path: string; title: string; keywords: string }[] {
    return this.sections.flatMap(({ slug, pages }) =>
      pages.map(({ slug: name, title, keywords = "" }) => ({
        path: `${slug}/${name}`,
        title,
        keywords,
      })),
    );
  }

  /**
   * Returns the file at a path below `/docs`, such as `guides/presets`, `guides/presets.md` or
   * `search.json`; undefined where there is none.
   */
  file(path: string): SiteFile | undefined {
    if (path === "") return this.page("start/quickstart");
    if (path === "llms.txt") return file("text", this.index());
    if (path === "llms-full.txt")
      return file("text", this.pages.map((page) => this.markdown(page.path) ?? "").join("\n\n"));
    if (path === "search.json") return file("json", JSON.stringify(this.searchEntries()));
    if (path.startsWith("site/")) return this.asset(path.slice("site/".length));
    if (!path.endsWith(".md")) return this.page(path);
    const markdown = this.markdown(path.slice(0, -".md".length));
    return markdown === undefined ? undefined : file("markdown", markdown);
  }

  /** Returns the Markdown of a page; undefined where there is no such page. */
  markdown(path: string): string | undefined {
    if (!this.pages.some((page) => page.path === path)) return undefined;
    return this.generated.get(path) ?? readFileSync(join(this.folder, `${path}.md`), "utf8");
  }

  /** Returns a rendered page; undefined where there is no such page. */
  render(path: string): RenderedPage | undefined {
    const known = this.rendered.get(path);
    if (known !== undefined) return known;
    const markdown = this.markdown(path);
    if (markdown === undefined) return undefined;
    const page = renderMarkdown(markdown, `/docs/${path}`);
    this.rendered.set(path, page);
    return page;
  }

  private page(path: string): SiteFile | undefined {
    const rendered = this.render(path);
    const title = this.pages.find((page) => page.path === path)?.title ?? path;
    return (
      rendered &&
      file("html", sitePage(rendered, { title, current: `/docs/${path}`, sections: this.sections }))
    );
  }

  /** Returns the index for agents (llmstxt.org): every page with the address of its Markdown. */
  private index(): string {
    const lists = this.sections.map(
      ({ slug, title, pages }) =>
        `## ${title}\n\n${pages.map((page) => `- [${page.title}](/docs/${slug}/${page.slug}.md)`).join("\n")}`,
    );
    return `# Switchyard\n\n> ${summary}\n\n${lists.join("\n\n")}\n`;
  }

  /** Returns the entries of the search, one for each part of a page. */
  private searchEntries(): SearchEntry[] {
    return this.pages.flatMap(({ path, title, keywords }) =>
      (this.render(path)?.parts ?? []).map((part, index) => ({
        id: `/docs/${path}${part.id === "" ? "" : `#${part.id}`}`,
        title: part.title,
        page: title,
        // The page as a whole is found by its keywords, not each of its parts.
        keywords: index === 0 ? keywords : "",
        text: part.text.trim().slice(0, path.startsWith("reference/api-") ? 600 : 20_000),
      })),
    );
  }

  private asset(name: string): SiteFile | undefined {
    if (name === "minisearch.js")
      return file("script", readFileSync(fileURLToPath(import.meta.resolve("minisearch")), "utf8"));
    const path = join(this.folder, "site", name);
    if (!/^[a-z]+\.(?:css|js)$/.test(name) || !existsSync(path)) return undefined;
    return file(name.endsWith(".css") ? "css" : "script", readFileSync(path, "utf8"));
  }
}

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

/** Returns links to the pages before and after the current one, in the order of the navigation. */
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

/** Returns a page of the site as an HTML document; only the search needs its script. */
function sitePage(
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

const assets = [
  "site/site.css",
  "site/site.js",
  "site/search.js",
  "site/theme.js",
  "site/minisearch.js",
];

/** Returns the place in the folder of a gateway's address; undefined where it is not part of it. */
function placeOf(address: string, ending: ".html" | ".md"): string | undefined {
  const [path = "", anchor] = address.split("#");
  const behind = anchor === undefined ? "" : `#${anchor}`;
  if (path === "/docs") return `index.html${behind}`;
  if (path === "/favicon.svg" || path === "/llms.txt") return path.slice(1);
  if (path === "/api/v1/openapi.json") return "openapi.json";
  if (!path.startsWith("/docs/")) return undefined;
  const inner = path.slice("/docs/".length);
  return `${/\.[a-z]+$/.test(inner) ? inner : `${inner}${ending}`}${behind}`;
}

/** Returns the address in the form that a file in a folder of the site uses. */
function relativeAddress(address: string, from: string, ending: ".html" | ".md"): string {
  const place = placeOf(address, ending);
  if (place === undefined) return address;
  const [path = "", anchor] = place.split("#");
  const link = posix.relative(posix.dirname(from), path);
  return anchor === undefined ? link : `${link}#${anchor}`;
}

const htmlAt = (html: string, file: string): string =>
  html.replaceAll(
    /\b(href|src)="(\/[^"]*)"/g,
    (_, name: string, address: string) => `${name}="${relativeAddress(address, file, ".html")}"`,
  );

const markdownAt = (markdown: string, file: string): string =>
  markdown.replaceAll(
    /\]\((\/[^)\s]*)\)/g,
    (_, address: string) => `](${relativeAddress(address, file, ".md")})`,
  );

/**
 * Returns the whole site as files of a folder, which any web server can serve at any path, since
 * links between them are relative.
 */
export function staticFiles(site: DocumentationSite): Map<string, string> {
  const files = new Map<string, string>();
  const textOf = (path: string): string => site.file(path)?.text ?? "";
  for (const { path } of site.pages) {
    files.set(`${path}.html`, htmlAt(textOf(path), `${path}.html`));
    files.set(`${path}.md`, markdownAt(textOf(`${path}.md`), `${path}.md`));
  }
  files.set("index.html", htmlAt(textOf(""), "index.html"));
  for (const name of ["llms.txt", "llms-full.txt"]) files.set(name, markdownAt(textOf(name), name));
  const entries = JSON.parse(textOf("search.json")) as { id: string }[];
  const placed = entries.map((entry) => ({ ...entry, id: placeOf(entry.id, ".html") }));
  files.set("search.json", JSON.stringify(placed));
  for (const name of assets) files.set(name, textOf(name));
  files.set("favicon.svg", faviconSvg);
  files.set("openapi.json", JSON.stringify(site.openApi));
  return files;
}
