import { ApiError } from "./api.ts";

/** A page on which a person mends what a refusal is about. */
interface Remedy {
  href: string;
  label: string;
}

const page = (path: string, label: string): Remedy => ({ href: `/dashboard${path}`, label });

/** By the reason of a refusal, where it names one. */
const byReason: Readonly<Record<string, Remedy>> = {
  balance_too_low: page("/credits", "Look at the credits"),
  key_limit_reached: page("/keys", "Look at the caps of keys"),
  second_factor_required: page("/account", "Set up a second factor"),
  budget_reached: page("/budgets", "Look at the budgets"),
};

/** By the code of a refusal. */
const byCode: Readonly<Record<string, Remedy>> = {
  insufficient_balance: page("/credits", "Look at the credits"),
  plan_required: page("/credits", "Look at the credits"),
  spend_limit_reached: page("/budgets", "Look at the budgets"),
  insufficient_scope: page("/members", "See who may do this"),
  forbidden: page("/keys", "See what the key may do"),
  ip_not_allowed: page("/security", "Look at the allowed addresses"),
  byok_required: page("/provider-keys", "Add a provider key"),
  model_unavailable: page("/models", "Choose another model"),
  no_upstream: page("/models", "Choose another model"),
  unknown_provider: page("/models", "Choose another model"),
  context_length_exceeded: page("/models?sort=context", "Find a longer context"),
  upstream_401: page("/provider-keys", "Look at the provider keys"),
  upstream_402: page("/provider-keys", "Look at the provider keys"),
};

/** Where a person can mend what the API refused; undefined where there is no such page. */
export function remedyOf(error: unknown): Remedy | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const found = byReason[error.reason ?? ""] ?? byCode[error.code];
  return found?.href === location.pathname ? undefined : found;
}
