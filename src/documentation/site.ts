import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writtenSections, type Section } from "./contents.ts";
import { generatedPages, type Facts } from "./generated-pages.ts";
import { renderMarkdown, type RenderedPage } from "./render-markdown.ts";
import { sitePage } from "./site-page.ts";

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

/** The documentation: written pages from a folder, generated ones from the program. Pages are rendered when they are first asked for. */
export class DocumentationSite {
  readonly sections: readonly Section[];
  private readonly folder: string;
  private readonly generated: ReadonlyMap<string, string>;
  private readonly rendered = new Map<string, RenderedPage>();

  constructor(folder: string, facts: Facts) {
    this.folder = folder;
    const pages = generatedPages(facts);
    this.generated = new Map(pages.map(({ slug, markdown }) => [`reference/${slug}`, markdown]));
    this.sections = [...writtenSections, { slug: "reference", title: "Reference", pages }];
  }

  /** Every page by its path below `/docs`, with its title. */
  get pages(): { path: string; title: string }[] {
    return this.sections.flatMap(({ slug, pages }) =>
      pages.map((page) => ({ path: `${slug}/${page.slug}`, title: page.title })),
    );
  }

  /** The file at a path below `/docs`, such as `guides/presets`, `guides/presets.md` or `search.json`; undefined where there is none. */
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

  /** The Markdown of a page; undefined where there is no such page. */
  markdown(path: string): string | undefined {
    if (!this.pages.some((page) => page.path === path)) return undefined;
    return this.generated.get(path) ?? readFileSync(join(this.folder, `${path}.md`), "utf8");
  }

  /** A page as it is rendered; undefined where there is no such page. */
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

  /** What agents read first (llmstxt.org): every page with the address of its Markdown. */
  private index(): string {
    const lists = this.sections.map(
      ({ slug, title, pages }) =>
        `## ${title}\n\n${pages.map((page) => `- [${page.title}](/docs/${slug}/${page.slug}.md)`).join("\n")}`,
    );
    return `# Switchyard\n\n> ${summary}\n\n${lists.join("\n\n")}\n`;
  }

  /** What the search looks through, a part of a page each. */
  private searchEntries(): { id: string; title: string; page: string; text: string }[] {
    return this.pages.flatMap(({ path, title }) =>
      (this.render(path)?.parts ?? []).map((part) => ({
        id: `/docs/${path}${part.id === "" ? "" : `#${part.id}`}`,
        title: part.title,
        page: title,
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
