import { html } from "hono/html";
import { checkboxes, formFields, formHtml, radios, selectHtml, type FormField } from "./forms.ts";
import { facts, notice } from "./message-page.ts";
import type { Html, Page } from "./page.ts";

/** A choice of a list, and whether it is selected initially. */
export interface Choice {
  value: string;
  label: string;
  chosen: boolean;
  hint?: string;
}

/** The grant that a person is asked to make to an app. */
export interface ConsentPage {
  title: string;
  /** The consequence of consent, in a sentence. */
  lead: string;
  facts: readonly (readonly [string, string])[];
  warnings: readonly string[];
  problem?: string | undefined;
  /** The address of the page that takes the decision, and hidden fields for it. */
  action: string;
  hidden: Readonly<Record<string, string>>;
  signedInAs: string;
  /** The address for signing out, to decide with another account. */
  signOutPath: string;
  workspaces: readonly Choice[];
  bundles?: readonly Choice[];
  scopes: readonly Choice[];
  /** The suggested cap in USD, and the highest that was requested. */
  limit: { value: string; max: string | undefined };
  resets: readonly Choice[];
  expiries: readonly Choice[];
  models: string;
  formTargets: readonly string[];
}

const select = (label: string, name: string, choices: readonly Choice[]): Html =>
  selectHtml({
    label,
    name,
    options: choices.map(({ value, label: text, chosen }) => ({
      value,
      label: text,
      selected: chosen,
    })),
  });

const limitField = ({ limit: { value, max } }: ConsentPage): FormField => ({
  name: "limit",
  label: "Spending cap in USD",
  type: "number",
  autocomplete: "off",
  value,
  min: "0",
  step: "any",
  optional: true,
  ...(max === undefined
    ? { hint: "Requests are refused once this much is spent. Empty means no cap." }
    : {
        max,
        hint: `Requests are refused once this much is spent. The app asked for ${max}; you may lower it.`,
      }),
});

const modelsField = ({ models }: ConsentPage): FormField => ({
  name: "models",
  label: "Models it may use",
  type: "text",
  autocomplete: "off",
  value: models,
  optional: true,
  hint: "Model ids, separated by commas. Empty means all models.",
});

const ticked = (choices: readonly Choice[]) =>
  choices.map(({ chosen, ...choice }) => ({ ...choice, checked: chosen }));

/**
 * Returns the parts of the form: the workspace that pays, permissions, cap, lifetime and models.
 */
const partsOf = (page: ConsentPage): Html => html`
${select("Workspace that pays", "workspace_id", page.workspaces)}
${page.bundles === undefined ? "" : radios({ legend: "Access", name: "bundle", options: ticked(page.bundles) })}
${page.scopes.length === 0 ? "" : checkboxes({ legend: "What it may do", name: "scope", options: ticked(page.scopes) })}
${formFields([limitField(page)])}
${select("The cap is for", "limit_reset", page.resets)}
${select("Access ends", "expiry", page.expiries)}
${formFields([modelsField(page)])}`;

/** Returns the page on which a person grants an app what it requested, or less, or declines. */
export const consentPage = (page: ConsentPage): Page => ({
  title: page.title,
  formTargets: page.formTargets,
  body: html`<div class="card"><h1>${page.title}</h1>
${page.problem === undefined ? "" : notice("bad", page.problem)}<p>${page.lead}</p>
${facts(page.facts)}${page.warnings.map((warning) => notice("warning", warning))}
<p>Signed in as ${page.signedInAs}. <a href="${page.signOutPath}">Use another account</a></p>
${formHtml({
  action: page.action,
  hidden: page.hidden,
  body: partsOf(page),
  button: "Approve",
  choice: { name: "decision", value: "approve" },
  other: { label: "Decline", name: "decision", value: "decline" },
})}</div>`,
});
