import { createHash } from "node:crypto";
import { brand } from "../platform/lib/brand.ts";
import { escapeHtml } from "./escape-html.ts";

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:4rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
label{display:block;margin:1rem 0 .25rem}
input{box-sizing:border-box;width:100%;padding:.5rem;font:inherit;border:1px solid #8888;border-radius:6px}
button{margin-top:1.5rem;padding:.55rem 1.1rem;font:inherit;border:0;border-radius:6px;background:#1f5fbf;color:#fff}
.problem{color:#b3261e}
@media (prefers-color-scheme:dark){body{color:#e6e8ea;background:#14171a}input{background:#1d2126;color:inherit}.problem{color:#ff8a80}}`;

/** One thing that a form asks for. */
export interface FormField {
  name: string;
  label: string;
  type: "text" | "email" | "password";
  autocomplete: string;
  value?: string;
  /** Can be read and not changed. */
  fixed?: true;
  charactersMin?: number;
}

/** A page with a few sentences, and a form where it asks for something. */
export interface FormPage {
  title: string;
  sentences: readonly string[];
  problem?: string;
  form?: PageForm;
  /** Another way to go on. */
  otherForm?: PageForm;
}

/** A form of a page. */
export interface PageForm {
  action: string;
  button: string;
  fields: readonly FormField[];
  hidden: Readonly<Record<string, string>>;
}

const fieldHtml = ({ name, label, type, autocomplete, value = "", fixed, charactersMin }: FormField): string =>
  `<label for="${name}">${escapeHtml(label)}</label><input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" `
  + `value="${escapeHtml(value)}" required${fixed ? " readonly" : ""}`
  + `${charactersMin === undefined ? "" : ` minlength="${charactersMin}"`}>`;

const formHtml = ({ action, button, fields, hidden }: PageForm): string =>
  `<form method="post" action="${action}">${fields.map(fieldHtml).join("")}`
  + Object.entries(hidden).map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`).join("")
  + `<button>${escapeHtml(button)}</button></form>`;

/** The page as HTML: no script, nothing loaded from elsewhere. */
export const formPageHtml = ({ title, sentences, problem, form, otherForm }: FormPage): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} - ${brand.productName}</title><style>${style}</style></head><body><h1>${escapeHtml(title)}</h1>
${sentences.map((sentence) => `<p>${escapeHtml(sentence)}</p>`).join("\n")}
${problem === undefined ? "" : `<p class="problem" role="alert">${escapeHtml(problem)}</p>`}
${form === undefined ? "" : formHtml(form)}
${otherForm === undefined ? "" : `<h2>Or</h2>${formHtml(otherForm)}`}
</body></html>
`;

/**
 * Headers of such pages. Their addresses carry tokens, so they are told to nobody and kept nowhere; of the
 * referrer policies that hold, `same-origin` is the one under which the form still says where it comes from.
 */
export const formPageHeaders = (): Record<string, string> => ({
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; `
    + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  "referrer-policy": "same-origin",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
});
