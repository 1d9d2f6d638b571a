import type { ImportPlan } from "../import-plan.ts";
import { expiryOf, resetOf } from "../litellm/litellm-keys.ts";
import type { SourceNode } from "../source-node.ts";
import type { BifrostUpstreams } from "./bifrost-upstreams.ts";

/** Seconds of Bifrost's units; `M` is a month, `m` a minute. */
const secondsByUnit: Readonly<Record<string, number>> = {
  s: 1,
  m: 60,
  h: 3_600,
  d: 86_400,
  w: 7 * 86_400,
  M: 30 * 86_400,
  Y: 365 * 86_400,
};

/** Returns the seconds of a duration such as `1h` or `1M`; undefined for other texts. */
function secondsOf(text: string | undefined): number | undefined {
  const [, count, unit = ""] = /^(\d+(?:\.\d+)?)([smhdwMY])$/.exec(text ?? "") ?? [];
  return count === undefined ? undefined : Number(count) * (secondsByUnit[unit] ?? 1);
}

/** Returns the window of a budget; reports where it differs. */
function windowOf(node: SourceNode | undefined): "daily" | "weekly" | "monthly" {
  const seconds = secondsOf(node?.text());
  if (seconds === undefined) return resetOf(node);
  const days = seconds / 86_400;
  const window = days <= 1 ? "daily" : days <= 7 ? "weekly" : "monthly";
  if (![1, 7, 30].includes(days)) node?.report("changed", `${node.text()} is counted as ${window}`);
  return window;
}

/** Reads virtual keys, with the budgets and limits that they refer to. */
export class BifrostGovernance {
  private readonly governance: SourceNode;
  private readonly idOf: (provider: string, model: string) => string;
  private readonly upstreams: BifrostUpstreams;

  constructor(
    private readonly plan: ImportPlan,
    options: {
      governance: SourceNode;
      idOf(provider: string, model: string): string;
      upstreams: BifrostUpstreams;
    },
  ) {
    this.governance = options.governance;
    this.idOf = options.idOf;
    this.upstreams = options.upstreams;
  }

  /** Fills the plan with keys, and with budgets of providers. */
  run(): void {
    for (const key of this.governance.get("virtual_keys")?.items() ?? []) this.addKey(key);
    for (const provider of this.governance.get("providers")?.items() ?? []) {
      const name = provider.get("name")?.text() ?? "";
      provider.get("id")?.whole();
      const budget = this.named("budgets", provider.get("budget_id")?.text());
      const limit = budget?.get("max_limit")?.number();
      if (limit === undefined) continue;
      this.plan.budgets.push({
        name: `Provider ${name}`,
        scope: "provider",
        subject: this.upstreams.vendorOf(name) ?? name,
        action: "block",
        limit,
        period: windowOf(budget?.get("reset_duration")),
      });
      provider.report("imported", `the budget of ${name} blocks it`);
    }
  }

  private addKey(key: SourceNode): void {
    const id = key.get("id")?.text();
    const name = key.get("name")?.text() ?? id ?? "bifrost";
    // The secret itself is neither kept nor shown.
    for (const fact of ["value", "description", "calendar_aligned"]) key.get(fact)?.whole();
    const expiry = expiryOf(key, "expires_at", { name, nowMs: this.plan.nowMs });
    if (expiry === undefined) return;
    const models = this.modelsOf(key);
    const isActive = key.get("is_active") === undefined || key.get("is_active")?.isTrue() === true;
    const isClosed = models?.length === 0;
    const isDisabled = !isActive || isClosed;
    this.plan.keys.push({
      name,
      ...this.limitOf(key, id),
      ...this.ratesOf(key),
      ...(models === undefined || isClosed ? {} : { allowed_models: models }),
      ...expiry,
      ...(isDisabled ? { disabled: true } : {}),
    });
    const state = isClosed
      ? "disabled, since it may ask no model that is known here, "
      : isActive
        ? ""
        : "disabled as it was, ";
    key.report("imported", `the key ${name}, ${state}with a new secret`);
  }

  /** Returns the models that a key may ask; undefined where it may ask all. */
  private modelsOf(key: SourceNode): string[] | undefined {
    const configs = key.get("provider_configs");
    if (configs === undefined) return undefined;
    const ids: string[] = [];
    let isOpen = false;
    for (const config of configs.items()) {
      const provider = config.get("provider")?.text() ?? "";
      for (const fact of ["id", "virtual_key_id", "key_ids"]) config.get(fact)?.whole();
      const list = config.get("allowed_models");
      const names = list?.texts() ?? [];
      if (names.includes("*")) isOpen = true;
      else ids.push(...names.map((model) => this.idOf(provider, model)));
    }
    if (!isOpen) return [...new Set(ids)];
    configs.report("changed", "the key may ask every model: providers are not limited by key");
    return undefined;
  }

  private limitOf(key: SourceNode, id: string | undefined): Record<string, unknown> {
    const budgets = (this.governance.get("budgets")?.items() ?? []).filter(
      (budget) => id !== undefined && budget.get("virtual_key_id")?.text() === id,
    );
    const [budget, ...others] = [
      ...(key.get("budgets")?.items() ?? []),
      ...budgets,
      ...[this.named("budgets", key.get("budget_id")?.text())].flatMap((each) => each ?? []),
    ];
    for (const other of others)
      other.report("left_out", "a key has one limit; write a budget for the other window");
    const limit = budget?.get("max_limit")?.number();
    if (budget === undefined || limit === undefined) return {};
    for (const fact of ["id", "current_usage", "last_reset"]) budget.get(fact)?.whole();
    return { limit, limit_reset: windowOf(budget.get("reset_duration")) };
  }

  private ratesOf(key: SourceNode): Record<string, unknown> {
    const inner = key.get("rate_limit");
    const rates = inner ?? this.named("rate_limits", key.get("rate_limit_id")?.text());
    for (const fact of ["id", "token_current_usage", "token_last_reset"]) rates?.get(fact)?.whole();
    for (const fact of ["request_current_usage", "request_last_reset"]) rates?.get(fact)?.whole();
    const perMinute = (kind: "request" | "token"): number | undefined => {
      const node = rates?.get(`${kind}_max_limit`);
      const count = node?.number();
      const every = rates?.get(`${kind}_reset_duration`)?.text() ?? "1m";
      const seconds = secondsOf(every);
      if (node === undefined || count === undefined || seconds === undefined) return undefined;
      if (seconds === 60) return count;
      const rate = Math.max(1, Math.round((count * 60) / seconds));
      node.report("changed", `${count} in ${every} are counted as ${rate} a minute`);
      return rate;
    };
    const [rate, tokens] = [perMinute("request"), perMinute("token")];
    return {
      ...(rate === undefined ? {} : { rate_limit: rate }),
      ...(tokens === undefined ? {} : { tpm: tokens }),
    };
  }

  private named(list: "budgets" | "rate_limits", id: string | undefined): SourceNode | undefined {
    if (id === undefined) return undefined;
    return this.governance
      .get(list)
      ?.items()
      .find((each) => each.get("id")?.text() === id);
  }
}
