import { Marked, type Tokens } from "marked";

/** A heading of a page, which links can target. */
interface Heading {
  depth: number;
  id: string;
  text: string;
}

/** A page as HTML, with what the navigation and the search need of it. */
export interface RenderedPage {
  html: string;
  headings: readonly Heading[];
  /**
   * The text below each heading, without markup. The first part, before any heading below the
   * title, has the page's own id.
   */
  parts: readonly { id: string; title: string; text: string }[];
}

/**
 * Returns the id of a heading: `X-Service-Model` and `insufficient_balance` are kept, spaces become
 * dashes.
 */
export const headingId = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\w\s.-]/g, "")
    .trim()
    .replaceAll(/\s+/g, "-");

/** Returns Markdown as text without its marks. */
export const plainText = (markdown: string): string =>
  markdown
    .replaceAll(/```\w*|[`*#|]|\]\([^)]*\)|\[|<[^>]+>/g, " ")
    .replaceAll(/-{3,}/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();

/**
 * Returns the address of a link within the site: files of other pages are named relative to their
 * own, with `.md`.
 */
function siteAddress(href: string, base: string): string {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return href;
  const { pathname, hash } = new URL(href, `http://site${base}`);
  return `${pathname.replace(/\.md$/, "")}${hash}`;
}

/**
 * Renders the Markdown of the page at `base`. HTML in it is shown as text, comments are omitted,
 * and every id occurs once on a page.
 */
export function renderMarkdown(markdown: string, base: string): RenderedPage {
  const headings: Heading[] = [];
  const parts: { id: string; title: string; text: string }[] = [];
  const seen = new Map<string, number>();
  const uniqueId = (text: string): string => {
    const base = headingId(text) || "section";
    const count = seen.get(base) ?? 0;
    seen.set(base, count + 1);
    return count === 0 ? base : `${base}-${count + 1}`;
  };
  const marked = new Marked({ gfm: true });
  // Comments tell the tests why a block is not run.
  const tokens = marked.lexer(markdown.replaceAll(/^<!--.*-->\n/gm, ""));
  for (const token of tokens) {
    if (token.type !== "heading") {
      const part = parts.at(-1);
      if (part !== undefined) part.text = `${part.text} ${plainText(token.raw)}`;
      continue;
    }
    const heading = token as Tokens.Heading;
    const text = plainText(heading.text);
    const entry = { depth: heading.depth, id: uniqueId(text), text };
    headings.push(entry);
    parts.push({ id: heading.depth === 1 ? "" : entry.id, title: text, text: "" });
  }
  let [next, tables] = [0, 0];
  marked.use({
    renderer: {
      heading({ tokens: inner, depth }) {
        const { id } = headings[next++] ?? { id: "" };
        const content = this.parser.parseInline(inner);
        return depth === 1
          ? `<h1>${content}</h1>\n`
          : `<h${depth} id="${id}">${content} <a class="anchor" href="#${id}" aria-label="Link to this section">#</a></h${depth}>\n`;
      },
      table({ header, rows }) {
        const cells = (row: Tokens.TableCell[], tag: string): string =>
          row
            .map(({ tokens: inner }) => `<${tag}>${this.parser.parseInline(inner)}</${tag}>`)
            .join("");
        const body = rows.map((row) => `<tr>${cells(row, "td")}</tr>`).join("\n");
        const head = `<thead><tr>${cells(header, "th")}</tr></thead>`;
        const open = `<div class="table" tabindex="0" role="region" aria-label="Table ${++tables}">`;
        return `${open}<table>${head}<tbody>\n${body}\n</tbody></table></div>\n`;
      },
      code: ({ text, lang = "" }) =>
        `<pre tabindex="0" data-language="${Bun.escapeHTML(lang.split(" ")[0] ?? "")}"><code>${Bun.escapeHTML(text)}</code></pre>\n`,
      html: ({ text }) => Bun.escapeHTML(text),
      link({ href, tokens: inner }) {
        return `<a href="${Bun.escapeHTML(siteAddress(href, base))}">${this.parser.parseInline(inner)}</a>`;
      },
    },
  });
  return { html: marked.parser(tokens), headings, parts };
}
