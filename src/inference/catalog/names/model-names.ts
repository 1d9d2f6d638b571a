import type { ModelNaming } from "../../providers/provider-definition.ts";

/** Slugs of owners by the other names that vendors and repositories give them, in lower case. */
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

/** Owners by patterns of their models' names; the first match counts. */
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

/** Matches names of remixes, which carry the name of the model that they were made from. */
const remixName = /uncensored|heretic|role-play/;

/** Returns the owner that a bare model name implies; undefined when it implies none. */
export const makerOfName = (name: string): string | undefined =>
  remixName.test(name) ? undefined : makersByName.find(([pattern]) => pattern.test(name))?.[1];

type Rename = readonly [pattern: RegExp, replacement: string];

/**
 * Vendors' renamings of each owner's models. Only certain cases are listed: an ambiguous name stays
 * as it is and becomes a model of its own.
 */
const renamesByMaker: Readonly<Record<string, readonly Rename[]>> = {
  // Anthropic writes versions with dashes, and `-0` where others write nothing.
  anthropic: [
    [/\./g, "-"],
    [/^(claude-(?:opus|sonnet)-4)-0$/, "$1"],
  ],
  openai: [
    [/^(gpt-5(?:\.\d)?-chat)-latest$/, "$1"],
    [/^gpt-5([1-9])(?=-|$)/, "gpt-5.$1"],
    [/^gpt-5\.6$/, "gpt-5.6-sol"],
    [/^(gpt-oss-\d+b)-1$/, "$1"],
  ],
  google: [
    [/^gemma([34])-(\d+b)$/, "gemma-$1-$2-it"],
    [/^(gemma-4-31b)-turbo$/, "$1-it"],
  ],
  "meta-llama": [
    [/^meta-/, ""],
    [/^llama(\d)-(\d)-/, "llama-$1.$2-"],
    [/^llama(\d)-/, "llama-$1-"],
    [/^(llama-4-(?:maverick|scout))-17b(?:-\d+e)?-instruct$/, "$1"],
    [/^(llama-3\.2-(?:11|90)b)$/, "$1-vision-instruct"],
    [/^(llama-3\.\d-\d+b)$/, "$1-instruct"],
    // Groq's names for the instruct models.
    [/^(llama-3\.\d-\d+b)-(?:versatile|instant)$/, "$1-instruct"],
  ],
  deepseek: [
    [/^(?=[vr]\d)/, "deepseek-"],
    [/^deepseek-chat-v/, "deepseek-v"],
    [/^deepseek-v3-([12])$/, "deepseek-v3.$1"],
    [/^(deepseek-v3\.1)-671b$/, "$1"],
  ],
  qwen: [
    [/^qwen-(?=\d)/, "qwen"],
    [/^qwen2-5/, "qwen2.5"],
    [/^(qwen3-(?:235b-a22b|30b-a3b))-2507$/, "$1-instruct-2507"],
    [/^qwen3-30b$/, "qwen3-30b-a3b"],
    [/^qwen3-coder(?:-480b(?:-a35b)?)?$/, "qwen3-coder-480b-a35b-instruct"],
    [/^qwen3-coder-30b(?:-a3b)?$/, "qwen3-coder-30b-a3b-instruct"],
    [/^qwen3-next-80b(?:-a3b)?$/, "qwen3-next-80b-a3b-instruct"],
    [/^qwen3\.5-397b$/, "qwen3.5-397b-a17b"],
    [/^qwen3-(235b-a22b-thinking)$/, "qwen3-$1-2507"],
  ],
  moonshotai: [
    [/^kimi-k2-(?:0711-preview|instruct|1t)$/, "kimi-k2"],
    [/^kimi-k2-(?:0905-preview|instruct-0905)$/, "kimi-k2-0905"],
  ],
  minimax: [[/^minimax-m2([1-9])$/, "minimax-m2.$1"]],
  "x-ai": [[/^grok-4-(1-fast|20|3)(?=-|$)/, "grok-4.$1"]],
  mistralai: [
    [/^mistral-large-(?:3|3-675b|3-675b-instruct|3-675b-instruct-2512)$/, "mistral-large-2512"],
    [/^mistral-medium-(?:2604|3-5|3\.5-128b)$/, "mistral-medium-3.5"],
    [/^mistral-medium-2508$/, "mistral-medium-3.1"],
    [/^mistral-medium-(?:2505|3-instruct)$/, "mistral-medium-3"],
    [/^mistral-small-(?:2506|3\.2-24b-instruct-2506)$/, "mistral-small-3.2-24b-instruct"],
    [/^mistral-small-2503$/, "mistral-small-3.1-24b-instruct"],
    [/^mistral-small-4-119b-2603$/, "mistral-small-2603"],
    [/^(?:open-mistral-nemo|mistral-nemo-(?:12b-instruct|instruct-2407))$/, "mistral-nemo"],
    [/^devstral-2(?:-123b)?(?:-instruct-2512)?$/, "devstral-2512"],
    [/^ministral-(?:3-)?(3b|8b|14b)-(?:instruct|2512)$/, "ministral-3-$1"],
    [/^mistral-7b-instruct-v03$/, "mistral-7b-instruct-v0.3"],
    [/^pixtral-12b-2409$/, "pixtral-12b"],
    [/^open-mixtral-8x(7|22)b$/, "mixtral-8x$1b-instruct"],
  ],
  ai21: [[/^ai21-/, ""]],
  liquid: [[/^lfm2-/, "lfm-2-"]],
  amazon: [[/-v1$/, ""]],
  cohere: [
    [/^cohere-/, ""],
    [/^command-a-03-2025$/, "command-a"],
    [/^embed-v-4-0$/, "embed-v4.0"],
    [/^embed-v3-(english|multilingual)$/, "embed-$1-v3.0"],
  ],
  microsoft: [[/^(phi-4-(?:mini|multimodal))$/, "$1-instruct"]],
  nvidia: [
    [/^nvidia-/, ""],
    [/^nemotron-nano-3-30b$|^nemotron-3-nano-30b$/, "nemotron-3-nano-30b-a3b"],
    [/^nemotron-(?:super-3-120b|3-120b-a12b|3-super|120b-a12b)$/, "nemotron-3-super-120b-a12b"],
    [/^nemotron-3-ultra$/, "nemotron-3-ultra-550b-a55b"],
    [/^nemotron-3-nano-omni$/, "nemotron-3-nano-omni-30b-a3b-reasoning"],
    [/^nemotron-nano-12b-v2$/, "nemotron-nano-12b-v2-vl"],
  ],
  upstage: [[/^solar-pro(\d)$/, "solar-pro-$1"]],
  deepcogito: [[/^cogito-(?:v2-1-|v?2\.1-)671b$/, "cogito-v2.1-671b"]],
};

/** Returns a model's name as its owner writes it, from a vendor's lower-case name. */
export function makersName(maker: string, name: string): string {
  const renames = renamesByMaker[maker] ?? [];
  // A suffix behind a colon, such as `:free`, is the vendor's and is kept.
  const [plain = name, ...suffix] = name.split(":");
  const renamed = renames.reduce(
    (text, [pattern, replacement]) => text.replace(pattern, replacement),
    plain,
  );
  return [renamed, ...suffix].join(":");
}

/** The facts that a wire name implies. */
export interface ReadName {
  /** `owner/model` in lower case; the same for every vendor of the model. */
  catalogId: string;
  /** The number format of the weights, where the name states it. */
  quantization?: string;
}

/** Single names that mean another model than they say, by vendor and wire name. */
const exceptions: Readonly<Record<string, string>> = {
  // Bedrock lists DeepSeek V3.1 under the name of V3.
  "amazon-bedrock deepseek.v3-v1:0": "deepseek/deepseek-v3.1",
  // The vendor's own `deepseek-chat` changes with every version; OpenRouter's means V3.
  "openrouter deepseek/deepseek-chat": "deepseek/deepseek-v3",
  "vercel alibaba/qwen-3-235b": "qwen/qwen3-235b-a22b-instruct-2507",
  "chutes unsloth/Mistral-Nemo-Instruct-2407-TEE": "mistralai/mistral-nemo",
};

/** Endings that say how a model is run, not which it is, and the number format that they imply. */
const endings: readonly { pattern: RegExp; keep: string; quantization?: string }[] = [
  { pattern: /-(?:maas|tee)$/, keep: "" },
  { pattern: /-fp8-fast$/, keep: "", quantization: "fp8" },
  { pattern: /-(fp8|fp16|bf16|int4|int8|nvfp4)$/, keep: "" },
  // Together and DeepInfra: Turbo is FP8, Lite is INT4.
  { pattern: /-instruct-turbo$/, keep: "-instruct", quantization: "fp8" },
  { pattern: /-instruct-2507-tput$/, keep: "-instruct-2507", quantization: "fp8" },
  { pattern: /-instruct-lite$/, keep: "-instruct", quantization: "int4" },
];

/** Parses a vendor's wire name into the owner and the model. */
export function readModelName(
  vendor: { id: string; naming: ModelNaming },
  upstreamModel: string,
): ReadName {
  const { naming } = vendor;
  const stripped = withoutPrefix(upstreamModel.toLowerCase(), naming.strip ?? []);
  const { maker, name } = splitMaker(stripped, vendor);
  const plain = plainName(name, naming);
  const { name: ended, quantization } = withoutEnding(plain);
  const owner = maker ?? makerOfName(ended) ?? vendor.id;
  const catalogId =
    exceptions[`${vendor.id} ${upstreamModel}`] ?? `${owner}/${makersName(owner, ended)}`;
  return quantization === undefined ? { catalogId } : { catalogId, quantization };
}

function withoutPrefix(name: string, prefixes: readonly string[]): string {
  const prefix = prefixes.find((candidate) => name.startsWith(candidate));
  return prefix === undefined ? name : name.slice(prefix.length);
}

function splitMaker(
  name: string,
  { naming }: { naming: ModelNaming },
): { maker?: string; name: string } {
  const at = name.indexOf(naming.separator ?? "/");
  if (at < 0) return naming.maker === undefined ? { name } : { maker: naming.maker, name };
  const maker = name.slice(0, at);
  return { maker: makerAliases[maker] ?? maker, name: name.slice(at + 1) };
}

/** Matches suffixes that stay behind a colon; other colons are the tags of Ollama's names. */
const keptSuffix = /:(?:free|thinking)$/;

function plainName(name: string, { separator, decimalPoint }: ModelNaming): string {
  let plain = name
    .replace(/@default$/, "")
    .replace("@", "-")
    .replace(/(\d)_(\d)/g, "$1.$2");
  // Bedrock ends names with a version of its packaging: `-v1:0`, `-v1`, `-1:0`.
  if (separator === ".") plain = plain.replace(/-v?\d:\d$|-v1$/, "");
  if (decimalPoint === "p") plain = plain.replace(/(\d)p(\d)/g, "$1.$2");
  if (decimalPoint === "-") plain = plain.replace(/(\d)-(\d)(?=-|$)/g, "$1.$2");
  return keptSuffix.test(plain) ? plain : plain.replace(":", "-");
}

function withoutEnding(name: string): { name: string; quantization?: string } {
  let plain = name;
  let quantization: string | undefined;
  for (const ending of endings) {
    const match = ending.pattern.exec(plain);
    if (match === null) continue;
    quantization ??= ending.quantization ?? match[1];
    plain = plain.slice(0, match.index) + ending.keep;
  }
  return quantization === undefined ? { name: plain } : { name: plain, quantization };
}
