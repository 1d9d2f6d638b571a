import { html, raw } from "hono/html";
import { brand } from "../platform/kernel/brand.ts";
import { styleSheet, styleSource } from "./styles.ts";

/** A piece of HTML whose values are escaped. */
export type Html = ReturnType<typeof html>;

/** A page that the server renders. */
export interface Page {
  title: string;
  /** What stands in `<main>`. */
  body: Html;
  /** Room for two columns of facts, or for a table. */
  width?: "wide" | "widest";
  /**
   * Origins beside this one that a form of the page may lead to, such as the app that asked for
   * consent (CSP `form-action`).
   */
  formTargets?: readonly string[];
  /** Address of a feed of this origin that reports changes (Atom, RFC 4287). */
  feed?: string;
  /** A script of this origin that adds to the page; the page works without it. */
  script?: string;
}

/** Markup for the text that `value` is, once it is known to need no escaping. */
const trusted = (value: string): Html => raw(value);

/** The page as an HTML document: no script is needed, and nothing is loaded from another origin. */
export function pageHtml({ title, body, width, script, feed }: Page): string {
  const document = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} - ${brand.productName}</title><link rel="icon" href="/favicon.svg" type="image/svg+xml">${
    feed === undefined
      ? ""
      : html`<link rel="alternate" type="application/atom+xml" href="${feed}">`
  }
<meta name="referrer" content="same-origin"><style>${trusted(styleSheet)}</style></head>
<body><header><a class="brand" href="/">${trusted(mark)}${brand.productName}</a></header>
<main${width === undefined ? "" : html` class="${width}"`}>${body}</main>
<footer><span>${brand.productName}, a self-hosted inference gateway</span><a href="/docs">Documentation</a></footer>
${script === undefined ? "" : html`<script src="${script}" defer></script>`}</body></html>
`;
  if (document instanceof Promise) throw new TypeError("a page holds no promise");
  return document.toString();
}

/**
 * Headers of pages. Their addresses may carry tokens, so no cache keeps them; `same-origin` is the
 * strictest referrer policy under which a form still says where it comes from. No other site may
 * frame them (clickjacking).
 */
export const pageHeaders = ({
  formTargets = [],
  script,
}: Pick<Page, "formTargets" | "script"> = {}): Record<string, string> => ({
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    `default-src 'none'; style-src ${styleSource}; img-src 'self' data:; ` +
    `${script === undefined ? "" : "script-src 'self'; connect-src 'self'; "}` +
    `form-action ${["'self'", ...formTargets].join(" ")}; frame-ancestors 'none'; base-uri 'none'`,
  "referrer-policy": "same-origin",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
});

/** The service's mark: two tracks that a switch joins. */
const paths =
  `<path d="M5 3v18M19 3v4c0 5-14 5-14 10" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round"/>` +
  `<circle cx="19" cy="3" r="2" fill="currentColor"/><circle cx="5" cy="21" r="2" fill="currentColor"/>`;

/**
 * The mark in the colour of the text around it, hidden from assistive technology, since the name
 * stands beside it.
 */
export const mark = `<svg viewBox="0 0 24 24" aria-hidden="true" focusable="false">${paths}</svg>`;

/**
 * The mark as a file of its own, for tabs and bookmarks; its colour follows the theme of the
 * browser.
 */
export const faviconSvg =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><style>svg{color:#2959c6}` +
  `@media (prefers-color-scheme:dark){svg{color:#7da5e3}}</style>${paths}</svg>`;
