import { html } from "hono/html";
import { formHtml, type Form } from "./forms.ts";
import type { Html, Page } from "./page.ts";

/** The kinds of notices: a failure, a success, a warning, or information. */
export type NoticeKind = "bad" | "good" | "warning" | "info";

/** Returns a notice above the content of a page; assistive technology reads failures out. */
export const notice = (kind: NoticeKind, text: string): Html =>
  html`<div class="notice ${kind}"${kind === "bad" ? html` role="alert"` : ""}>${text}</div>`;

/** Returns a link that looks like a button. */
export const linkButton = ({
  href,
  label,
  plain,
}: {
  href: string;
  label: string;
  plain?: true;
}): Html => html`<a class="button${plain ? " plain" : ""}" href="${href}">${label}</a>`;

/** Returns facts as names and values. */
export const facts = (rows: readonly (readonly [string, Html | string])[]): Html =>
  html`<dl>${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;

/** A page with a few sentences, a form where it asks for something, and links to continue. */
export interface MessagePage {
  title: string;
  sentences?: readonly string[];
  /** The reason why the form was not accepted, or the failure. */
  problem?: string;
  /** The action that succeeded. */
  done?: string;
  warning?: string;
  form?: Form;
  /** Content below the form, such as other ways to sign in. */
  more?: Html;
  links?: readonly { href: string; label: string; plain?: true }[];
}

/** Returns the page of a message: one card. */
export const messagePage = ({
  title,
  sentences = [],
  problem,
  done,
  warning,
  form,
  more,
  links = [],
}: MessagePage): Page => ({
  title,
  body: html`<div class="card"><h1>${title}</h1>${problem === undefined ? "" : notice("bad", problem)}${
    done === undefined ? "" : notice("good", done)
  }${warning === undefined ? "" : notice("warning", warning)}${sentences.map(
    (sentence) => html`<p>${sentence}</p>`,
  )}${form === undefined ? "" : formHtml(form)}${more ?? ""}${
    links.length === 0 ? "" : html`<div class="actions">${links.map(linkButton)}</div>`
  }</div>`,
});
