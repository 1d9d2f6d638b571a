import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import { coversScope, type Scope } from "../../identity/keys/scopes.ts";
import type { LimitReset } from "../../identity/keys/llm-key-store.ts";
import { bundles, narrowedScopes, scopeWords, type Bundle } from "../../consent/granted-scopes.ts";
import type { Terms } from "../../consent/connections.ts";
import { consentPage, type Choice, type ConsentPage } from "../../pages/consent-page.ts";
import type { Page } from "../../pages/page.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { nanoFromUsd, usdFromNano } from "../../platform/kernel/money.ts";
import { withReturn } from "../pages/page-response.ts";
import { workspacesOf } from "../account/workspace.ts";
import type { Dependencies } from "../dependencies.ts";
import { type Role, scopesOf } from "../../identity/people/roles.ts";

/** An app's request, before a person decides. */
export interface Asked {
  terms: Terms;
  /** Whether one of the contract's bundles can be chosen, beside single scopes. */
  withBundles: boolean;
}

/** A person's decision, read from the form. A problem is shown on the page again. */
export type Decision =
  | { kind: "approve"; workspaceId: string; terms: Terms }
  | { kind: "decline" }
  | { kind: "again"; problem: string };

/** The cap in USD that is suggested where the app requests none. */
const suggestedLimitUsd = 10;

const expiryDays = [1, 7, 30, 90, 365] as const;
const suggestedExpiryDays = 90;

const resets: readonly (readonly [string, string])[] = [
  ["monthly", "30 days, rolling"],
  ["weekly", "7 days, rolling"],
  ["daily", "24 hours, rolling"],
];

const dateOf = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10);

function expiryChoices(askedMs: number | null, nowMs: number): Choice[] {
  const days = expiryDays
    .filter((count) => askedMs === null || nowMs + count * dayMs < askedMs)
    .map((count) => ({
      value: String(count),
      label: count === 1 ? "in 1 day" : `in ${count} days`,
      chosen: askedMs === null && count === suggestedExpiryDays,
    }));
  const last =
    askedMs === null
      ? { value: "never", label: "when I disconnect it", chosen: false }
      : { value: "asked", label: `on ${dateOf(askedMs)}, as the app asked`, chosen: true };
  return [...days, last];
}

const bundleChoices = (wanted: readonly Scope[]): Choice[] => {
  const asksToWrite = wanted.some(
    (scope) => !(bundles.read_only as readonly Scope[]).includes(scope),
  );
  const readOnly = {
    value: "read_only",
    label: "Read-only",
    hint: "See your account and send requests to models.",
    chosen: true,
  };
  const standard = {
    value: "standard",
    label: "Standard",
    hint: "Also create and change keys, presets and prompts.",
    chosen: false,
  };
  return asksToWrite ? [readOnly, standard] : [readOnly];
};

/** The texts of a consent page, beside the requested terms. */
export type ConsentText = Pick<
  ConsentPage,
  "title" | "lead" | "facts" | "warnings" | "action" | "hidden" | "formTargets" | "problem"
> & {
  /** The path and query that show the same request again, such as to another account. */
  again: string;
};

/** Returns the page on which a person decides about what an app requested. */
export async function askConsent(
  deps: Pick<Dependencies, "directory" | "people" | "clock">,
  person: SessionCaller,
  { asked: { terms, withBundles }, text: { again, ...text } }: { asked: Asked; text: ConsentText },
): Promise<Page> {
  const places = await workspacesOf(deps, person.user.id);
  const limit = terms.limitNanoUsd === null ? suggestedLimitUsd : usdFromNano(terms.limitNanoUsd);
  return consentPage({
    ...text,
    hidden: { ...text.hidden, user_id: person.user.id },
    signedInAs: person.user.email,
    signOutPath: withReturn("/sign-out", again),
    workspaces: places.map(({ workspace }) => ({
      value: workspace.id,
      label: workspace.name,
      chosen: workspace.id === person.workspace.id,
    })),
    ...(withBundles ? { bundles: bundleChoices(terms.scopes) } : {}),
    scopes: terms.scopes.map((scope) => ({
      value: scope,
      label: scopeWords[scope] ?? scope,
      chosen: true,
    })),
    limit: { value: String(limit), max: terms.limitNanoUsd === null ? undefined : String(limit) },
    resets: resets.map(([value, label]) => ({
      value,
      label,
      chosen: value === (terms.limitReset ?? "monthly"),
    })),
    expiries: expiryChoices(terms.expiresAtMs, deps.clock.nowMs()),
    models: (terms.allowedModels ?? []).join(", "),
  });
}

const isBundle = (text: string | null): text is Bundle =>
  text === "read_only" || text === "standard";

/**
 * Returns the approved scopes: requested, in the chosen bundle, ticked, and held by the person in
 * that workspace.
 */
function approvedScopes(
  form: URLSearchParams,
  { terms, withBundles }: Asked,
  role: Role,
): readonly Scope[] {
  const bundle = form.get("bundle");
  const within: readonly Scope[] = withBundles
    ? bundles[isBundle(bundle) ? bundle : "read_only"]
    : terms.scopes;
  const held = scopesOf(role);
  return narrowedScopes(form.getAll("scope"), terms.scopes).filter(
    (scope) => within.includes(scope) && coversScope(held, scope),
  );
}

function limitOf(form: URLSearchParams, asked: bigint | null): bigint | null | "bad" {
  const text = (form.get("limit") ?? "").trim();
  if (text === "") return asked;
  const usd = Number(text);
  const nano =
    Number.isFinite(usd) && usd >= 0 && usd <= 9_000_000 ? (nanoFromUsd(usd) ?? 0n) : undefined;
  if (nano === undefined) return "bad";
  return asked !== null && nano > asked ? asked : nano;
}

function expiryOf(form: URLSearchParams, askedMs: number | null, nowMs: number): number | null {
  const days = Number(form.get("expiry"));
  if (!Number.isInteger(days) || days < 1 || days > 3_650) return askedMs;
  const atMs = nowMs + days * dayMs;
  return askedMs === null ? atMs : Math.min(atMs, askedMs);
}

const modelsOf = (form: URLSearchParams): string[] =>
  [
    ...new Set(
      (form.get("models") ?? "")
        .toLowerCase()
        .split(/[\s,]+/)
        .filter((id) => id !== ""),
    ),
  ].slice(0, 200);

const resetOf = (form: URLSearchParams, asked: LimitReset): LimitReset => {
  const reset = form.get("limit_reset");
  return reset === "daily" || reset === "weekly" || reset === "monthly" ? reset : asked;
};

/**
 * Reads the decision. What is approved never exceeds what was requested, or what the person may do.
 */
export async function readDecision(
  deps: Pick<Dependencies, "directory" | "people" | "clock">,
  person: SessionCaller,
  { form, asked }: { form: URLSearchParams; asked: Asked },
): Promise<Decision> {
  if (form.get("user_id") !== person.user.id) {
    return {
      kind: "again",
      problem: `You are signed in as ${person.user.email} now. Check the request and decide again.`,
    };
  }
  if (form.get("decision") !== "approve") return { kind: "decline" };
  const place = (await workspacesOf(deps, person.user.id)).find(
    ({ workspace }) => workspace.id === form.get("workspace_id"),
  );
  if (place === undefined || place.workspace.blocked)
    return { kind: "again", problem: "Choose one of your workspaces." };
  const { terms } = asked;
  const scopes = approvedScopes(form, asked, place.role);
  if (terms.scopes.length > 0 && scopes.length === 0)
    return { kind: "again", problem: "Tick at least one thing that it may do, or decline." };
  const limitNanoUsd = limitOf(form, terms.limitNanoUsd);
  if (limitNanoUsd === "bad")
    return { kind: "again", problem: "The cap must be an amount in USD, such as 5 or 0.50." };
  const models = modelsOf(form);
  const allowedModels =
    terms.allowedModels === null
      ? models
      : models.filter((id) => terms.allowedModels?.includes(id));
  return {
    kind: "approve",
    workspaceId: place.workspace.id,
    terms: {
      label: terms.label,
      limitNanoUsd,
      limitReset: resetOf(form, terms.limitReset),
      scopes,
      expiresAtMs: expiryOf(form, terms.expiresAtMs, deps.clock.nowMs()),
      allowedModels: allowedModels.length === 0 ? terms.allowedModels : allowedModels,
    },
  };
}
