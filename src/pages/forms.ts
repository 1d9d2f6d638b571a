import { html } from "hono/html";
import type { Html } from "./page.ts";

/** A field of a form. */
export interface FormField {
  name: string;
  label: string;
  type: "text" | "email" | "password" | "number" | "date";
  autocomplete: string;
  value?: string;
  /** A sentence below the field. */
  hint?: string;
  /** Whether the value can be read and not changed. */
  fixed?: true;
  optional?: true;
  charactersMin?: number;
  /** Bounds and step of a number, or of a date. */
  min?: string;
  max?: string;
  step?: string;
  /** Whether phones should show a numeric keyboard. */
  digits?: true;
  /** Whether it is a code that is read out or copied, shown in large capitals. */
  code?: true;
}

/** A form that is sent to a page of this origin. */
export interface Form {
  action: string;
  fields?: readonly FormField[];
  hidden?: Readonly<Record<string, string>>;
  /** Content between the fields and the buttons. */
  body?: Html;
  button: string;
  /** A second way to send the form, such as "Decline": the name and value that it sends. */
  other?: { label: string; name: string; value: string };
  /** The name and value that the main button sends. */
  choice?: { name: string; value: string };
  /** Whether the main button is one of several equal choices, and drawn so. */
  plain?: true;
  /** Content beside the buttons, such as a link. */
  beside?: Html;
}

const attribute = (name: string, value: string | number | undefined): Html =>
  value === undefined ? html`` : html` ${name}="${value}"`;

function attributesOf({
  autocomplete,
  value,
  fixed,
  optional,
  charactersMin,
  min,
  max,
  step,
  digits,
  code,
}: FormField): Html {
  const limits = html`${attribute("minlength", charactersMin)}${attribute("min", min)}${attribute("max", max)}${attribute("step", step)}`;
  const flags = html`${fixed ? html` readonly` : ""}${optional ? "" : html` required`}${digits ? html` inputmode="numeric"` : ""}`;
  const look = code ? html` class="big-code" spellcheck="false" autocapitalize="characters"` : "";
  return html` autocomplete="${autocomplete}"${attribute("value", value)}${limits}${flags}${look}`;
}

function fieldHtml(field: FormField): Html {
  const { name, label, type, hint } = field;
  const described = hint === undefined ? "" : html` aria-describedby="${name}-hint"`;
  const below = hint === undefined ? "" : html`<p class="hint" id="${name}-hint">${hint}</p>`;
  const input = html`<input id="${name}" name="${name}" type="${type}"${attributesOf(field)}${described}>`;
  return html`<label for="${name}">${label}</label>${input}${below}`;
}

/** Returns fields alone, for a form with mixed parts. */
export const formFields = (fields: readonly FormField[]): Html => html`${fields.map(fieldHtml)}`;

/** Returns a form with its fields and buttons. */
export function formHtml({
  action,
  fields = [],
  hidden = {},
  body,
  button,
  other,
  choice,
  plain,
  beside,
}: Form): Html {
  const kept = Object.entries(hidden).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  const sent = choice === undefined ? "" : html` name="${choice.name}" value="${choice.value}"`;
  const main = html`<button${plain ? html` class="plain"` : ""}${sent}>${button}</button>`;
  const second =
    other === undefined
      ? ""
      : html`<button class="plain" name="${other.name}" value="${other.value}" formnovalidate>${other.label}</button>`;
  return html`<form method="post" action="${action}">${fields.map(fieldHtml)}${body ?? ""}${kept}<div class="actions">${main}${
    second
  }${beside ?? ""}</div></form>`;
}

/** A group of options under one name. */
interface Choices {
  legend: string;
  name: string;
  options: readonly { value: string; label: string; checked: boolean; hint?: string }[];
}

/** Returns checkboxes, of which several may be ticked. */
export const checkboxes = (choices: Choices): Html => choicesHtml("checkbox", choices);

/** Returns options of which one is chosen. */
export const radios = (choices: Choices): Html => choicesHtml("radio", choices);

const choicesHtml = (type: "checkbox" | "radio", { legend, name, options }: Choices): Html =>
  html`<fieldset><legend>${legend}</legend>${options.map(
    ({ value, label, checked, hint }) =>
      html`<label class="choice"><input type="${type}" name="${name}" value="${value}"${checked ? html` checked` : ""}><span>${label}${
        hint === undefined ? "" : html`<span class="hint"> ${hint}</span>`
      }</span></label>`,
  )}</fieldset>`;

/** Returns a list to choose one entry of. */
export const selectHtml = ({
  label,
  name,
  options,
}: {
  label: string;
  name: string;
  options: readonly { value: string; label: string; selected: boolean }[];
}): Html =>
  html`<label for="${name}">${label}</label><select id="${name}" name="${name}">${options.map(
    (option) =>
      html`<option value="${option.value}"${option.selected ? html` selected` : ""}>${option.label}</option>`,
  )}</select>`;
