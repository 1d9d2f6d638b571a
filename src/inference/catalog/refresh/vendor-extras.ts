import type { FactRow } from "../catalog-facts.ts";

/** What a vendor charges for some of its models beside tokens at the ordinary price. */
interface VendorExtras extends Partial<Pick<FactRow, ExtraField>> {
  provider: string;
  /** Tested against the wire name. */
  models: RegExp;
}

type ExtraField = "service_tier" | "speed" | "inference_geo" | "tools" | "searches_once";

/**
 * OpenAI's priority prices of models whose modes the facts source does not list, in USD per million
 * tokens. Source: OpenAI's price page as of 2026-07, beside `experimental.modes` of models.dev.
 */
const priority: readonly (readonly [
  models: RegExp,
  input: string,
  read: string,
  output: string,
])[] = [
  [/^gpt-5(?:\.1)?(?:-codex)?$/, "2.5", "0.25", "20"],
  [/^gpt-5-mini$/, "0.45", "0.045", "3.6"],
  [/^gpt-4\.1$/, "3.5", "0.875", "14"],
  [/^gpt-4\.1-mini$/, "0.7", "0.175", "2.8"],
  [/^gpt-4\.1-nano$/, "0.2", "0.05", "0.8"],
  [/^gpt-4o(?:-2024-(?:08-06|11-20))?$/, "4.25", "2.125", "17"],
  [/^gpt-4o-mini$/, "0.25", "0.125", "1"],
  [/^o3$/, "3.5", "0.875", "14"],
  [/^o4-mini$/, "2", "0.5", "8"],
];

/** A search of the web at OpenAI and Anthropic, in USD. */
const searchUsd = "0.01";

/** Every extra by vendor and model, from the vendors' price pages (2026-07). */
const vendorExtras: readonly VendorExtras[] = [
  ...priority.map(([models, input, read, output]) => ({
    provider: "openai",
    models,
    service_tier: { priority: { input, output, cache_read: read } },
  })),
  // Flex costs half. OpenAI lists it for these models.
  {
    provider: "openai",
    models: /^(?:gpt-5(?:\.1)?|gpt-5-mini|gpt-5-nano|o3|o4-mini)$/,
    service_tier: { flex: "0.5" },
  },
  // Searches of the preview tool cost more with models that do not reason, so those have no price.
  // o1 and o3-mini answer 400 to them: BerriAI/litellm#23275, pydantic/genai-prices#630 (2026-08).
  {
    provider: "openai",
    models: /^(?:gpt-[5-9]|o(?!1(?:-|$)|3-mini)\d)/,
    tools: { web_search: searchUsd },
  },
  {
    provider: "openai",
    models: /^(?:gpt-[5-9]|o[1-9])/,
    tools: {
      file_search: "0.0025",
      code_interpreter: "0.03",
      code_interpreter_4g: "0.12",
      code_interpreter_16g: "0.48",
      code_interpreter_64g: "1.92",
    },
  },
  { provider: "anthropic", models: /^claude-/, tools: { web_search: searchUsd } },
  // Inference in the United States alone: Claude Opus 4.6 and every later model.
  {
    provider: "anthropic",
    models: /^claude-(?:opus-4-[6-9]|sonnet-4-[6-9]|[a-z]+-(?:[5-9]|\d{2,})(?:-|$))/,
    inference_geo: { us: "1.1" },
  },
  // Before Gemini 3, Google charges each prompt that was grounded, and since then each query.
  {
    provider: "google",
    models: /^gemini-[12]/,
    tools: { web_search: "0.035" },
    searches_once: true,
  },
  { provider: "google", models: /^gemini-[3-9]/, tools: { web_search: "0.014" } },
];

/** Adds what the vendor charges beside tokens to a row; what the source says takes precedence. */
export function withVendorExtras(row: FactRow): FactRow {
  if (row.prices === undefined || row.surface !== "chat") return row;
  const found = vendorExtras.filter(
    ({ provider, models }) => provider === row.provider && models.test(row.upstream),
  );
  return found.reduce(merged, row);
}

function merged(row: FactRow, extras: VendorExtras): FactRow {
  const { provider: _, models: __, searches_once: once, ...tables } = extras;
  const next: Record<string, unknown> = { ...row };
  for (const [field, values] of Object.entries(tables))
    next[field] = { ...values, ...row[field as keyof typeof tables] };
  if (once === true) next["searches_once"] = once;
  return next as FactRow;
}
