import { endpointsOf } from "./litellm-routes.ts";
import type { ImportPlan } from "../import-plan.ts";
import type { SourceDocument } from "../source-document.ts";
import type { SourceNode } from "../source-node.ts";

const daysByUnit: Readonly<Record<string, number>> = {
  s: 1 / 86_400,
  m: 1 / 1_440,
  h: 1 / 24,
  d: 1,
  w: 7,
  mo: 30,
};

/** Returns the window closest to a duration such as `30d`; reports where it differs. */
export function resetOf(node: SourceNode | undefined): "daily" | "weekly" | "monthly" {
  const written = node?.text();
  if (written === undefined) return "monthly";
  const word = /^(daily|weekly|monthly)$/.exec(written)?.[1];
  const [, count = "30", unit = "d"] = /^(\d+)(s|m|h|d|w|mo)$/.exec(written) ?? [];
  const days = Number(count) * (daysByUnit[unit] ?? 1);
  const reset =
    (word as "daily" | "weekly" | "monthly" | undefined) ??
    (days <= 1 ? "daily" : days <= 7 ? "weekly" : "monthly");
  const isExact = word !== undefined || [1, 7, 30].includes(days);
  if (!isExact) node?.report("changed", `${written} is counted as ${reset}`);
  return reset;
}

/** Words that LiteLLM writes in place of a list of models. */
const allModels = new Set(["all-proxy-models", "all-team-models", "*"]);

/** The models that a key may ask, or that its bounds are those of a team, which no export of keys holds. */
type KeyModels = { models: readonly string[] | undefined } | "of its team";

function modelsOf(key: SourceNode, idOf: (name: string) => string | undefined): KeyModels {
  const list = key.get("models");
  const names = list?.texts() ?? [];
  const words = names.filter((name) => allModels.has(name));
  const isOfTeam = words.includes("all-team-models") || key.get("team_id") !== undefined;
  if (list === undefined || names.length === 0 || words.length > 0) {
    if (isOfTeam) return "of its team";
    if (words.length > 0)
      list?.report("changed", `${words.join(", ")}: the key may ask every model`);
    return { models: undefined };
  }
  const unknown = names.filter((name) => idOf(name) === undefined);
  if (unknown.length > 0)
    list.report("left_out", `${unknown.join(", ")}: not a model of the configuration`);
  return { models: names.flatMap((name) => idOf(name) ?? []) };
}

/**
 * Returns when a key expires; undefined where it cannot be made, since it has expired or its moment
 * is not one. The report says so.
 */
export function expiryOf(
  key: SourceNode,
  field: string,
  { name, nowMs }: { name: string; nowMs: number },
): { expires_at?: string } | undefined {
  const written = key.get(field)?.text();
  if (written === undefined) return {};
  const expiresMs = Date.parse(written);
  if (expiresMs > nowMs) return { expires_at: new Date(expiresMs).toISOString() };
  const reason = Number.isNaN(expiresMs)
    ? `is not made: ${field} is no moment (${written})`
    : `has expired (${written}) and is not made`;
  key.report("left_out", `the key ${name} ${reason}`);
  return undefined;
}

/**
 * Returns what a key may still spend. A budget for ever is reduced by what was spent of it; one of a
 * period starts at zero, and the report says so.
 */
function limitOf(
  key: SourceNode,
  duration: SourceNode | undefined,
): { limit: number | undefined; isUsedUp: boolean } {
  const limit = key.get("max_budget")?.number();
  const spend = key.get("spend");
  const spent = spend?.number() ?? 0;
  if (limit === undefined || spent <= 0) return { limit, isUsedUp: false };
  if (duration !== undefined) {
    spend?.report("changed", `$${spent} of $${limit} were spent; the new key starts at zero`);
    return { limit, isUsedUp: false };
  }
  const left = Math.round((limit - spent) * 1e6) / 1e6;
  spend?.report(
    "changed",
    left > 0
      ? `$${spent} of $${limit} were spent, so the limit is $${left}`
      : `all of $${limit} was spent, so the key is made disabled`,
  );
  return { limit: left > 0 ? left : limit, isUsedUp: left <= 0 };
}

/**
 * Reads virtual keys as `GET /key/list?return_full_object=true` returns them. Their secrets are
 * hashes, so each key is created again with a new one.
 */
export function importLiteLlmKeys(
  source: SourceDocument,
  plan: ImportPlan,
  idOf: (name: string) => string | undefined,
): void {
  const { root } = source;
  const keys = root.isList() ? root : (root.get("keys") ?? root.get("data"));
  for (const [index, listed] of (keys?.items() ?? []).entries()) {
    const key = listed.get("info") ?? listed;
    if (!key.isMap()) {
      key.report("left_out", "is a hash alone: export with return_full_object=true");
      continue;
    }
    for (const unused of ["token", "key", "created_at", "updated_at", "key_name"])
      key.get(unused)?.whole();
    const name =
      key.get("key_alias")?.text() ?? key.get("key_name")?.text() ?? `litellm-${index + 1}`;
    const duration = key.get("budget_duration");
    const { limit, isUsedUp } = limitOf(key, duration);
    const endpoints = endpointsOf(key.get("allowed_routes"));
    const [rate, tokens] = [key.get("rpm_limit")?.number(), key.get("tpm_limit")?.number()];
    const models = modelsOf(key, idOf);
    const expiry = expiryOf(key, "expires", { name, nowMs: plan.nowMs });
    const isBlocked = key.get("blocked")?.isTrue() ?? false;
    if (expiry === undefined) continue;
    const isOpen = models === "of its team";
    const isDisabled = isBlocked || isOpen || isUsedUp || endpoints === "none";
    plan.keys.push({
      name,
      ...(limit === undefined ? {} : { limit, limit_reset: resetOf(duration) }),
      ...(rate === undefined ? {} : { rate_limit: rate }),
      ...(tokens === undefined ? {} : { tpm: tokens }),
      ...(isOpen || models.models === undefined ? {} : { allowed_models: models.models }),
      ...expiry,
      ...(endpoints === undefined || endpoints === "none" ? {} : { allowed_endpoints: endpoints }),
      ...(isDisabled ? { disabled: true } : {}),
    });
    if (limit !== undefined && duration === undefined)
      key.get("max_budget")?.report("changed", "is counted over 30 days, not for ever");
    if (isOpen)
      key.report(
        "changed",
        `the key ${name} is made disabled, with a new secret: its models are those of its team, which are not in ` +
          "this file; set allowed_models, then enable it",
      );
    else
      key.report(
        "imported",
        `the key ${name}, ${isBlocked ? "disabled as it was, " : isDisabled ? "disabled, " : ""}with a new secret`,
      );
  }
}
