/** Slugs of makers by the other names that vendors and repositories give them, in lower case. */
export const makerAliases: Readonly<Record<string, string>> = {
  "ai21-labs": "ai21",
  alibaba: "qwen",
  "bytedance-seed": "bytedance",
  "deepseek-ai": "deepseek",
  liquidai: "liquid",
  meta: "meta-llama",
  minimaxai: "minimax",
  mistral: "mistralai",
  "mistral-ai": "mistralai",
  moonshot: "moonshotai",
  "stepfun-ai": "stepfun",
  xai: "x-ai",
  xiaomimimo: "xiaomi",
  zai: "z-ai",
  "zai-org": "z-ai",
  zhipuai: "z-ai",
};

/** Makers by how their models are called; the first that fits. */
const makersByName: readonly (readonly [RegExp, string])[] = [
  [/^claude/, "anthropic"],
  [/^(?:gpt|chatgpt|codex)|^o[134](?:-|$)|^text-embedding-(?:3|ada)/, "openai"],
  [/^(?:gemini|gemma)/, "google"],
  [/^(?:meta-)?llama/, "meta-llama"],
  [/^deepseek/, "deepseek"],
  [/^(?:qwen|qwq|qvq)/, "qwen"],
  [/^(?:mistral|ministral|magistral|devstral|codestral|pixtral|voxtral|mixtral)/, "mistralai"],
  [/^grok/, "x-ai"],
  [/^glm/, "z-ai"],
  [/^kimi/, "moonshotai"],
  [/^minimax/, "minimax"],
  [/^nemotron/, "nvidia"],
  [/^phi-/, "microsoft"],
  [/^(?:cohere-)?(?:command|embed-v)/, "cohere"],
  [/^nova-/, "amazon"],
  [/^mimo/, "xiaomi"],
  [/^mercury/, "inception"],
  [/^hermes/, "nousresearch"],
  [/^cogito/, "deepcogito"],
  [/^trinity/, "arcee-ai"],
  [/^aion-/, "aion-labs"],
  [/^rnj-/, "essentialai"],
  [/^bge-/, "baai"],
];

/** Names of remixes that carry the name of the model they were made from. */
const remixName = /uncensored|heretic|role-play/;

/** The maker that a bare model name tells; undefined when it tells none. */
export const makerOfName = (name: string): string | undefined =>
  remixName.test(name) ? undefined : makersByName.find(([pattern]) => pattern.test(name))?.[1];
