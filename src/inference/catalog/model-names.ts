type Rename = readonly [pattern: RegExp, replacement: string];

/**
 * How each maker's models are called by others, and how it calls them itself. Only what is certain: a
 * name that could mean two models stays as it is and becomes a model of its own.
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

/** A model's name as its maker writes it, from a lower-case name as a vendor writes it. */
export function makersName(maker: string, name: string): string {
  const renames = renamesByMaker[maker] ?? [];
  // What stands behind a colon, such as `:free`, is the vendor's and stays.
  const [plain = name, ...suffix] = name.split(":");
  const renamed = renames.reduce(
    (text, [pattern, replacement]) => text.replace(pattern, replacement),
    plain,
  );
  return [renamed, ...suffix].join(":");
}
