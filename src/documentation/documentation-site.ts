import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { faviconSvg } from "../pages/page.ts";
import { apiPages, type OperationPage } from "./api-pages.ts";
import { writtenSections } from "./contents.ts";
import { frontPage, missingPage } from "./front-page.ts";
import { generatedPages, type Facts } from "./generated-pages.ts";
import { plainText, renderMarkdown, type RenderedPage } from "./render-markdown.ts";
import { operationAddress, routeName, sitePage, type SiteSection } from "./site-frame.ts";

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
  readonly sections: readonly SiteSection[];
  /** The OpenAPI document that the reference is generated from. */
  readonly openApi: Facts["openApi"];
  /** The page of each operation of the API, by its path below `/docs`. */
  readonly operations: ReadonlyMap<string, OperationPage>;
  private readonly publicUrl: string;
  private readonly generated: ReadonlyMap<string, string>;
  /** The lists of operations that people see where agents read every operation in full. */
  private readonly overviews: ReadonlyMap<string, string>;
  private readonly rendered = new Map<string, RenderedPage>();

  constructor(
    private readonly folder: string,
    facts: Facts,
  ) {
    this.openApi = facts.openApi;
    this.publicUrl = facts.publicUrl;
    const api = apiPages(facts.openApi, facts.publicUrl);
    const pages = generatedPages(facts);
    this.operations = new Map(
      api.flatMap(({ operations }) => operations.map((each) => [`api/${each.slug}`, each])),
    );
    this.generated = new Map([
      ...[...api, ...pages].map(({ slug, markdown }) => [`reference/${slug}`, markdown] as const),
      ...[...this.operations].map(([path, { markdown }]) => [path, markdown] as const),
    ]);
    this.overviews = new Map(api.map(({ slug, overview }) => [`reference/${slug}`, overview]));
    this.sections = [
      ...writtenSections,
      { slug: "reference", title: "API", pages: api },
      { slug: "reference", title: "Reference", pages },
    ];
  }

  /** Every page by its path below `/docs`, with its title; operations are beside them. */
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
    if (path === "") {
      const front = frontPage(this.sections, { summary, publicUrl: this.publicUrl });
      return file("html", sitePage(front, this.sections));
    }
    if (path === "llms.txt") return file("text", this.index());
    if (path === "llms-full.txt")
      return file("text", this.pages.map((page) => this.markdown(page.path) ?? "").join("\n\n"));
    if (path === "search.json") return file("json", JSON.stringify(this.searchEntries()));
    if (path.startsWith("site/")) return this.asset(path.slice("site/".length));
    if (!path.endsWith(".md")) return this.page(path);
    const markdown = this.markdown(path.slice(0, -".md".length));
    return markdown === undefined ? undefined : file("markdown", markdown);
  }

  /** Returns the page for an address that the site does not have, with the navigation. */
  missing(path: string): SiteFile {
    return file("html", sitePage(missingPage(this.sections, path), this.sections));
  }

  /** Returns the Markdown of a page; undefined where there is no such page. */
  markdown(path: string): string | undefined {
    const generated = this.generated.get(path);
    if (generated !== undefined) return generated;
    if (!this.pages.some((page) => page.path === path)) return undefined;
    return readFileSync(join(this.folder, `${path}.md`), "utf8");
  }

  /** Returns a rendered page; undefined where there is no such page. */
  render(path: string): RenderedPage | undefined {
    const known = this.rendered.get(path);
    if (known !== undefined) return known;
    const markdown = this.overviews.get(path) ?? this.markdown(path);
    if (markdown === undefined) return undefined;
    const page = renderMarkdown(markdown, `/docs/${path}`);
    this.rendered.set(path, page);
    return page;
  }

  private page(path: string): SiteFile | undefined {
    const rendered = this.render(path);
    if (rendered === undefined) return undefined;
    const operation = this.operations.get(path);
    const title = operation?.title ?? this.pages.find((page) => page.path === path)?.title ?? path;
    const framed = {
      title,
      current: `/docs/${path}`,
      source: `/docs/${path}.md`,
      html: operation === undefined ? rendered.html : operationHtml(rendered.html, operation),
      parts: rendered.headings.filter(({ depth }) => depth === 2),
      hasLanguages: operation !== undefined,
    };
    return file("html", sitePage(framed, this.sections));
  }

  /** Returns the index for agents (llmstxt.org): every page with the address of its Markdown. */
  private index(): string {
    const lists = this.sections.map(
      ({ slug, title, pages }) =>
        `## ${title}\n\n${pages.map((page) => `- [${page.title}](/docs/${slug}/${page.slug}.md)`).join("\n")}`,
    );
    return `# Switchyard\n\n> ${summary}\n\n${lists.join("\n\n")}\n`;
  }

  /** Returns the entries of the search: one for each part of a page and each operation. */
  private searchEntries(): SearchEntry[] {
    const parts = this.pages
      .filter(({ path }) => !this.overviews.has(path))
      .flatMap(({ path, title, keywords }) =>
        (this.render(path)?.parts ?? []).map((part, index) => ({
          id: `/docs/${path}${part.id === "" ? "" : `#${part.id}`}`,
          title: part.title,
          page: title,
          // The page as a whole is found by its keywords, not each of its parts.
          keywords: index === 0 ? keywords : "",
          text: part.text.trim().slice(0, 20_000),
        })),
      );
    const operations = this.sections.flatMap(({ pages }) =>
      pages.flatMap(({ title, operations: found = [] }) =>
        found.map((each) => ({
          id: operationAddress(each),
          title: each.name,
          page: title,
          keywords: "",
          text: plainText(`${each.title}. ${each.markdown}`).slice(0, 600),
        })),
      ),
    );
    return [...parts, ...operations];
  }

  private asset(name: string): SiteFile | undefined {
    if (name === "minisearch.js")
      return file("script", readFileSync(fileURLToPath(import.meta.resolve("minisearch")), "utf8"));
    const path = join(this.folder, "site", name);
    if (!/^[a-z]+\.(?:css|js)$/.test(name) || !existsSync(path)) return undefined;
    return file(name.endsWith(".css") ? "css" : "script", readFileSync(path, "utf8"));
  }
}

/**
 * Returns the page of an operation: its route below the title, and a place for the form that sends
 * it, which the script fills where a person is signed in.
 */
function operationHtml(html: string, { method, path, name, trial }: OperationPage): string {
  const plain = `<p><code>${Bun.escapeHTML(name)}</code></p>`;
  const routed = html.replace(plain, () => `<p class="route">${routeName({ method, path })}</p>`);
  if (trial === undefined) return routed;
  const place = `<section id="try" data-trial="${Bun.escapeHTML(JSON.stringify(trial))}" hidden></section>`;
  const at = routed.indexOf("<h2 ");
  return at < 0 ? `${routed}${place}` : `${routed.slice(0, at)}${place}${routed.slice(at)}`;
}

const assets = [
  "site/site.css",
  "site/site.js",
  "site/search.js",
  "site/theme.js",
  "site/try.js",
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
  for (const path of [...site.pages.map((page) => page.path), ...site.operations.keys()]) {
    files.set(`${path}.html`, htmlAt(textOf(path), `${path}.html`));
    files.set(`${path}.md`, markdownAt(textOf(`${path}.md`), `${path}.md`));
  }
  files.set("index.html", htmlAt(textOf(""), "index.html"));
  for (const name of ["llms.txt", "llms-full.txt"]) files.set(name, markdownAt(textOf(name), name));
  const entries = JSON.parse(textOf("search.json")) as { id: string }[];
  const placed = entries.map((entry) => ({ ...entry, id: placeOf(entry.id, ".html") }));
  files.set("search.json", JSON.stringify(placed));
  for (const name of assets) files.set(name, textOf(name));
  // The fonts are the gateway's own files; elsewhere the reader's fonts are used.
  files.set("site/site.css", textOf("site/site.css").replaceAll(/@font-face\s*\{[^}]*\}\s*/g, ""));
  files.set("favicon.svg", faviconSvg);
  files.set("openapi.json", JSON.stringify(site.openApi));
  return files;
}
