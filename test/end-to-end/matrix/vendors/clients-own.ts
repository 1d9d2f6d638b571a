/** The beginnings of the names of rules for which a Messages client's body is changed. */
const fittedForClaude = [
  "cap-above-model",
  "foreign-signature",
  "other-vendors-signature",
  "moved-thought",
  "adaptive-on",
  "budget-on-newer",
  "effort-on-older",
  "effort-level",
  "thinking-disabled",
  "thinking-off-with-much-effort",
  "later-system",
  "search-id",
  "unsealed-search",
];

/**
 * Rules that a client breaks by a mistake in its own dialect: the gateway refuses the request, or
 * passes it on unchanged and the vendor's refusal back with its reason. Nothing could be put in place
 * of what the client wrote, or the contract says that native bodies stay as they are.
 */
export const clientsOwn: readonly RegExp[] = [
  // Messages upstreams receive the body of a Messages client with no change but to its thinking, and to
  // instructions at places that the model does not know.
  new RegExp(`^anthropic/(?!${fittedForClaude.join("|")})`),
  // `none` is never clamped (contract, reasoning rules 1 and 3).
  /^(?:openai\/(?:responses-)?effort-none|groq\/effort-gpt-oss)$/,
  // Calls and results that do not belong together.
  /\/(?:responses-)?(?:calls?-without-(?:results|output|name)|results-without-calls|output-without-call)$/,
  // Members that mean nothing without another one.
  /\/(?:choice-without-tools|parallel-without-tools|empty-tools|stream-options-unstreamed|top-logprobs-alone)$/,
  // Values out of range, and more of something than the vendor takes.
  /\/(?:(?<!(?:cohere|moonshotai)\/)temperature-range|top-p-zero|cap-of-zero|too-many-\w+|responses-small-cap)$/,
  /\/n$|^vllm\/effort-values$/,
  /\/(?:large-metadata|long-session)$/,
  /\/responses-too-many-pairs-of-metadata$/,
  // Schemas and names of tools, which are the client's own words.
  /\/(?:tool-name|array-without-items|(?:responses-)?older-schema|parameters-without-properties|strict-[\w-]+|responses-strict-[\w-]+)$/,
  /^openai\/(?:responses-)?top-level-forms$/,
  /^llama-cpp\/(?:pattern-without-anchors|prompt-\w+)$/,
  /\/(?:schema-missing|schema-streamed|json-without-the-word)$/,
  // A model, an effort or JSON mode that the client names beside a tool that excludes it.
  /^openai\/responses-search-(?:with-least-effort|in-json-mode|of-older-models)$/,
  // Fields that the client's own dialect does not have.
  /^openai\/(?:responses-unknown-(?!reasoning)|responses-item-id|responses-nested-tool)/,
  /^openai\/responses-(?:reasoning-alone|search-without-reasoning)$/,
  /^openai\/(?:unknown-thinking|unknown-top-k|image-in-a-result)$/,
  /^(?:mistral\/extra-functions|openrouter\/(?:effort-and-budget|two-efforts)|cohere\/n)$/,
  // Turns in an order or a form that the model's own template refuses.
  /\/(?:alternating-turns|(?<!(?:mistral|moonshotai)\/)empty-assistant|prefill-while-thinking|missing-content)$/,
  /^llama-cpp\/(?:grammar-beside-functions|logprobs-streamed-with-functions|thought-and-text-beside-calls)$/,
  /^groq\/(?:cache-control|cap-above-model)$/,
  // What one family of models lacks.
  /^xai\/responses-functions$/,
  // Thinking in the vendor's own words.
  /^(?:moonshotai\/thinking-and-effort|(?:moonshotai|zai)\/thinking-off-on-thinkers|zai\/effort-of-thinkers)$/,
];

/**
 * Rules about seals of another account or at another place, which nothing but their vendor's refusal
 * shows: the request is refused once, and taken without them.
 */
export const mended: ReadonlySet<string> = new Set([
  "openai/responses-other-account",
  "azure/responses-other-account",
  "anthropic/other-vendors-signature",
  "anthropic/moved-thought",
]);
