/** LiteLLM's prefixes of models whose provider has another name here. */
export const vendors: Readonly<Record<string, string>> = {
  azure_ai: "azure",
  bedrock: "amazon-bedrock",
  bedrock_converse: "amazon-bedrock",
  cohere_chat: "cohere",
  dashscope: "alibaba",
  fireworks_ai: "fireworks",
  gemini: "google",
  github: "github-models",
  hosted_vllm: "vllm",
  jina_ai: "jina",
  lm_studio: "lm-studio",
  moonshot: "moonshotai",
  nvidia_nim: "nvidia",
  ollama_chat: "ollama",
  together_ai: "together",
  vertex_ai: "google-vertex",
  ...Object.fromEntries(
    [
      ...["anthropic", "azure", "baseten", "cerebras", "cloudflare", "cohere", "databricks"],
      ...["deepinfra", "deepseek", "friendli", "groq", "huggingface", "minimax", "mistral"],
      ...["nebius", "novita", "ollama", "openai", "openrouter", "ovhcloud", "perplexity"],
      ...["siliconflow", "vllm", "voyage", "wandb", "xai", "zai"],
    ].map((id) => [id, id]),
  ),
};

/** Vendors whose servers are the operator's own, so that models without a price are free. */
export const localVendors = new Set(["ollama", "vllm", "lm-studio"]);

const reasons: readonly (readonly [RegExp, string])[] = [
  [
    /^litellm_settings\.(success|failure)?_?callback/,
    "requests are traced to OpenTelemetry; see /docs/operate/observability",
  ],
  [
    /^litellm_settings\.(cache|cache_params)\b/,
    "there is no cache of answers; prompts are cached by the providers",
  ],
  [
    /^(litellm_settings|router_settings)\.(num_retries|allowed_fails|cooldown_time|retry_policy)/,
    "the next provider or model is tried at once, and failing ones come last",
  ],
  [
    /context_window_fallbacks|content_policy_fallbacks/,
    "models that are too small are left out before a request is sent; other refusals are the answer",
  ],
  [
    /^router_settings\.routing_strategy/,
    "providers are ordered by price and health; see /docs/guides/routing",
  ],
  [
    /^general_settings\.allowed_routes/,
    "endpoints are allowed to keys, not to the whole gateway: allowed_endpoints of a key",
  ],
  [/cache_control_injection_points/, "prompts are cached as the client or the provider marks them"],
  [/^environment_variables/, "variables are set where the gateway starts"],
  [/redis_/, "several gateways share shared.url; see /docs/operate/several-gateways"],
  [
    /^general_settings\.(database_url|store_model_in_db)/,
    "the ledger is in a database of its own: storage.url",
  ],
  [/^general_settings\.master_key/, "the owner's account and management keys take its place"],
  [/^general_settings\.alert/, "budgets send mail and webhooks; see /docs/guides/budgets"],
  [/guardrails/, "there are no guardrails"],
  [/\.(rpm|tpm|max_parallel_requests)$/, "limits are set on keys, not on a provider's models"],
  [
    /weight$|\.order$/,
    "providers are ordered by price and health, or by provider.order of a request or preset",
  ],
  [/drop_params/, "what a provider cannot do is reported in X-Service-Translation-Loss"],
  [
    /^mcp_servers/,
    "MCP servers are registered with POST /mcp-servers, or in the dashboard; see /docs/guides/tools",
  ],
];

/** Returns why a part of the file has no counterpart. */
export const reasonFor = (path: string): string =>
  reasons.find(([pattern]) => pattern.test(path))?.[1] ?? "has no counterpart";

/**
 * Converts a reference to a variable to the configuration's form: `os.environ/NAME`, or `${NAME}`
 * and `$NAME`, which a shell replaces before LiteLLM reads the file; undefined for other texts.
 */
export const referenceOf = (text: string): string | undefined => {
  const found = /^(?:os\.environ\/([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*))$/.exec(
    text,
  );
  const name = found?.[1] ?? found?.[2] ?? found?.[3];
  return name === undefined ? undefined : `\${${name}}`;
};
