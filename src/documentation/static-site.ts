import { posix } from "node:path";
import { faviconSvg } from "../pages/page.ts";
import type { DocumentationSite } from "./site.ts";

const assets = ["site/site.css", "site/site.js", "site/theme.js", "site/minisearch.js"];

/** Where an address of the gateway is in the folder; undefined where it is not part of it. */
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

/** The address as a file in a folder of the site writes it. */
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
 * The whole site as files of a folder, which any web server can serve at any path: links between
 * them are relative.
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
