import { html, raw } from "hono/html";
import { brand } from "../platform/kernel/brand.ts";
import { createHash } from "node:crypto";

/**
 * The style sheet of the server-rendered pages, with the dashboard's design tokens, so that both
 * look like one product. The contrast of text is at least 4.5:1, and that of controls 3:1, in both
 * themes (WCAG 2.2, 1.4.3 and 1.4.11).
 */
const styleSheet = `
@font-face{font-family:Inter;src:url("/fonts/inter.woff2") format("woff2");font-weight:100 900;font-display:swap}
@font-face{font-family:"Geist Mono";src:url("/fonts/geist-mono.woff2") format("woff2");font-weight:100 900;font-display:swap}
:root{color-scheme:light dark;--page:#fafbfc;--surface:#fff;--muted:#f3f5f7;--line:#dfe3e8;--control:#868f9b;--text:#14181f;
--second:#4a5360;--third:#667080;--accent:#2959c6;--on-accent:#fff;--accent-ground:#eaf0fb;--good:#0f7a4d;--good-ground:#e7f5ee;
--warning:#946000;--warning-ground:#fdf3dc;--bad:#c0291f;--bad-ground:#fdecea}@media (prefers-color-scheme:dark){:root{
--page:#0e1116;--surface:#14171c;--muted:#1c2128;--line:#2a313a;--control:#6b7684;--text:#e8ebef;--second:#a8b1bd;--third:#8b95a3;
--accent:#7da5e3;--on-accent:#0b1a33;--accent-ground:#16233a;--good:#4cc38a;--good-ground:#12291f;--warning:#e5b04c;
--warning-ground:#2b2312;--bad:#ff8077;--bad-ground:#331917}}
*{box-sizing:border-box}
[hidden]{display:none!important}
body{margin:0;background:var(--page);color:var(--text);font:14px/22px Inter,system-ui,-apple-system,"Segoe UI",sans-serif;
min-height:100vh;display:flex;flex-direction:column}
header,footer{padding:16px 24px;display:flex;gap:16px;align-items:center}
footer{color:var(--third);font-size:13px;margin-top:auto;flex-wrap:wrap}
.brand{display:inline-flex;gap:8px;align-items:center;font-weight:600;font-size:16px;color:var(--text);text-decoration:none}
.brand svg{width:24px;height:24px}
main{width:100%;max-width:464px;margin:24px auto;padding:0 16px}
main.wide{max-width:720px}
main.widest{max-width:1120px}
.card{background:var(--surface);border:1px solid var(--line);border-radius:10px;padding:24px}
.card+.card{margin-top:16px}
h1{font-size:20px;line-height:28px;font-weight:600;margin:0 0 8px}
h2{font-size:16px;line-height:24px;font-weight:600;margin:24px 0 8px}
.card>h2:first-child{margin-top:0}
p{margin:0 0 12px;color:var(--second)}
p:last-child,.card>:is(dl,ul):last-child{margin-bottom:0}
a{color:var(--accent)}
h3{font-size:13px;line-height:20px;font-weight:500;margin:12px 0 4px}
.days{width:100%;height:24px;display:block}
.days .good{fill:var(--good)}.days .fair{fill:var(--warning)}.days .bad{fill:var(--bad)}.days .idle{fill:var(--line)}
code,.code{font-family:"Geist Mono",ui-monospace,SFMono-Regular,Menlo,monospace;font-size:13px;overflow-wrap:anywhere}
.code{display:block;background:var(--muted);border-radius:6px;padding:8px 12px;color:var(--text);user-select:all}
label{display:block;margin:16px 0 4px;font-weight:500}
.hint{color:var(--third);font-size:13px;margin:4px 0 0}
input:not([type=checkbox]):not([type=radio]),select{width:100%;min-height:36px;padding:6px 10px;font:inherit;color:inherit;
background:var(--surface);border:1px solid var(--control);border-radius:6px}
input[readonly]{background:var(--muted)}
.big-code{font-family:"Geist Mono",ui-monospace,monospace;font-size:20px;letter-spacing:.12em;text-transform:uppercase}
.choice{display:flex;gap:8px;align-items:flex-start;margin:8px 0;font-weight:400}
.choice input{margin:4px 0 0;width:16px;height:16px;flex:none}
fieldset{border:1px solid var(--line);border-radius:6px;padding:8px 12px;margin:16px 0 0}
legend{font-weight:500;padding:0 4px}
button,.button{display:inline-flex;align-items:center;justify-content:center;min-height:36px;padding:6px 14px;font:inherit;font-weight:500;
border:1px solid var(--accent);border-radius:6px;background:var(--accent);color:var(--on-accent);cursor:pointer;text-decoration:none}
button.plain,.button.plain{background:transparent;color:var(--text);border-color:var(--control)}
.actions{display:flex;gap:8px;flex-wrap:wrap;margin-top:24px}
.stack{display:grid;gap:8px;margin-top:16px}
.stack .actions{margin:0}
.stack .actions>*{flex:1}
.actions a:not(.button){align-self:center;padding:6px 0}
.or{display:flex;align-items:center;gap:12px;color:var(--third);margin:24px 0 0}
.or::before,.or::after{content:"";height:1px;background:var(--line);flex:1}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.notice{border-radius:6px;padding:8px 12px;margin:0 0 16px;color:var(--text)}
.notice.bad{background:var(--bad-ground);color:var(--bad)}
.notice.good{background:var(--good-ground);color:var(--good)}
.notice.warning{background:var(--warning-ground);color:var(--warning)}
.notice.info{background:var(--accent-ground)}
dl{display:grid;grid-template-columns:minmax(88px,auto) 1fr;gap:4px 16px;margin:16px 0}
dt{color:var(--third)}
dd{margin:0;overflow-wrap:anywhere}
dd code{font-size:12px}
ul,ol{margin:0 0 12px;padding-left:20px;color:var(--second)}
li{margin:4px 0}
.steps{padding:0;list-style:none;counter-reset:step}
.steps h2::before{counter-increment:step;content:counter(step) ". "}
pre.code{overflow:auto;white-space:pre;margin:0 0 12px}
.scroll{overflow-x:auto}
table{width:100%;border-collapse:collapse}
th,td{text-align:left;vertical-align:top;padding:8px 12px 8px 0;border-bottom:1px solid var(--line);color:var(--second)}
th{font-weight:500;color:var(--text)}
td code{overflow-wrap:break-word}
tfoot td{font-weight:600;color:var(--text);border-bottom:0}
.amount{text-align:right;padding-right:0;padding-left:12px;font-variant-numeric:tabular-nums}
.find label{margin-top:0}.find>div{display:flex;gap:8px;margin-bottom:16px}th a{color:inherit}
.parties{display:flex;flex-wrap:wrap;gap:0 48px;margin-bottom:24px}
.parties p{margin:0}
@media print{body{background:#fff}body>header,body>footer{display:none}.card{border:0;padding:0}main{margin:0;max-width:none}}
@media (max-width:767px){button,.button,input:not([type=checkbox]):not([type=radio]),select{min-height:44px}.card{padding:16px}
header,footer{padding:12px 16px}.actions>*{flex:1}.further{display:none}}
`;

/**
 * The source expression by which a content security policy allows the style sheet (CSP level 3,
 * section 2.3.1).
 */
const styleSource = `'sha256-${createHash("sha256").update(styleSheet).digest("base64")}'`;

/** A piece of HTML whose values are escaped. */
export type Html = ReturnType<typeof html>;

/** A page that the server renders. */
export interface Page {
  title: string;
  /** The content of `<main>`. */
  body: Html;
  /** Wider than a card: room for two columns of facts, or for a table. */
  width?: "wide" | "widest";
  /**
   * Further origins that a form of the page may lead to, such as the app that asked for consent
   * (CSP `form-action`).
   */
  formTargets?: readonly string[];
  /** The address of a feed of this origin that reports changes (Atom, RFC 4287). */
  feed?: string;
  /** A script of this origin that adds to the page; the page works without it. */
  script?: string;
}

/** Returns text as markup, for a `value` that is known to need no escaping. */
const trusted = (value: string): Html => raw(value);

/**
 * Returns the page as an HTML document: no script is needed, and nothing is loaded from another
 * origin.
 */
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
 * Returns the headers of pages. Page addresses may contain tokens, so no cache keeps them;
 * `same-origin` is the strictest referrer policy under which a form still states its origin. No
 * other site may frame them (clickjacking).
 */
export const pageHeaders = ({
  formTargets = [],
  script,
}: Pick<Page, "formTargets" | "script"> = {}): Record<string, string> => ({
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    `default-src 'none'; style-src ${styleSource}; img-src 'self' data:; font-src 'self'; ` +
    `${script === undefined ? "" : "script-src 'self'; connect-src 'self'; "}` +
    `form-action ${["'self'", ...formTargets].join(" ")}; frame-ancestors 'none'; base-uri 'none'`,
  "referrer-policy": "same-origin",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
});

/** The service's logo: two tracks that a switch joins. */
const paths =
  `<path d="M5 3v18M19 3v4c0 5-14 5-14 10" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round"/>` +
  `<circle cx="19" cy="3" r="2" fill="currentColor"/><circle cx="5" cy="21" r="2" fill="currentColor"/>`;

/**
 * The logo in the colour of the surrounding text, hidden from assistive technology, since the name
 * is beside it.
 */
export const mark = `<svg viewBox="0 0 24 24" aria-hidden="true" focusable="false">${paths}</svg>`;

/**
 * The logo as a file of its own, for tabs and bookmarks; its colour follows the browser's theme.
 */
export const faviconSvg =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><style>svg{color:#2959c6}` +
  `@media (prefers-color-scheme:dark){svg{color:#7da5e3}}</style>${paths}</svg>`;
