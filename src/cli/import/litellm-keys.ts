import type { ImportPlan } from "./import-plan.ts";
import type { SourceDocument, SourceNode } from "./source-document.ts";

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

function modelsOf(
  key: SourceNode,
  idOf: (name: string) => string | undefined,
): string[] | undefined {
  const list = key.get("models");
  const names = list?.texts() ?? [];
  if (list === undefined || names.length === 0) return undefined;
  const words = names.filter((name) => allModels.has(name));
  if (words.length > 0) {
    list.report("changed", `${words.join(", ")}: the key may ask every model`);
    return undefined;
  }
  const unknown = names.filter((name) => idOf(name) === undefined);
  if (unknown.length > 0)
    list.report("left_out", `${unknown.join(", ")}: not a model of the configuration`);
  return names.flatMap((name) => idOf(name) ?? []);
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
    for (const unused of ["token", "key", "spend", "created_at", "updated_at", "key_name"])
      key.get(unused)?.whole();
    const name =
      key.get("key_alias")?.text() ?? key.get("key_name")?.text() ?? `litellm-${index + 1}`;
    const limit = key.get("max_budget")?.number();
    const duration = key.get("budget_duration");
    const [rate, tokens] = [key.get("rpm_limit")?.number(), key.get("tpm_limit")?.number()];
    const models = modelsOf(key, idOf);
    const expires = key.get("expires")?.text();
    plan.keys.push({
      name,
      ...(limit === undefined ? {} : { limit, limit_reset: resetOf(duration) }),
      ...(rate === undefined ? {} : { rate_limit: rate }),
      ...(tokens === undefined ? {} : { tpm: tokens }),
      ...(models === undefined ? {} : { allowed_models: models }),
      ...(expires === undefined ? {} : { expires_at: new Date(expires).toISOString() }),
      ...(key.get("blocked")?.isTrue() ? { disabled: true } : {}),
    });
    if (limit !== undefined && duration === undefined)
      key.get("max_budget")?.report("changed", "is counted over 30 days, not for ever");
    key.report("imported", `the key ${name}, with a new secret`);
  }
}
