import type { ModelNaming } from "../providers/provider-definition.ts";
import { makerAliases, makerOfName } from "./makers.ts";
import { makersName } from "./model-names.ts";

/** What a wire name tells. */
export interface ReadName {
  /** `owner/model` in lower case; the same for every vendor of the model. */
  catalogId: string;
  /** Weights' number format where the name states it. */
  quantization?: string;
}

/** Single names that mean another model than they say, by vendor and wire name. */
const exceptions: Readonly<Record<string, string>> = {
  // Bedrock lists DeepSeek V3.1 under the name of V3.
  "amazon-bedrock deepseek.v3-v1:0": "deepseek/deepseek-v3.1",
  // The vendor's own `deepseek-chat` moves with every version; OpenRouter's stands for V3.
  "openrouter deepseek/deepseek-chat": "deepseek/deepseek-v3",
  "vercel alibaba/qwen-3-235b": "qwen/qwen3-235b-a22b-instruct-2507",
  "chutes unsloth/Mistral-Nemo-Instruct-2407-TEE": "mistralai/mistral-nemo",
};

/** Endings that say how a model is run, not which it is, and the number format they stand for. */
const endings: readonly { pattern: RegExp; keep: string; quantization?: string }[] = [
  { pattern: /-(?:maas|tee)$/, keep: "" },
  { pattern: /-fp8-fast$/, keep: "", quantization: "fp8" },
  { pattern: /-(fp8|fp16|bf16|int4|int8|nvfp4)$/, keep: "" },
  // Together and DeepInfra: Turbo is FP8, Lite is INT4.
  { pattern: /-instruct-turbo$/, keep: "-instruct", quantization: "fp8" },
  { pattern: /-instruct-2507-tput$/, keep: "-instruct-2507", quantization: "fp8" },
  { pattern: /-instruct-lite$/, keep: "-instruct", quantization: "int4" },
];

/** Reads a vendor's wire name: whose model it is and which. */
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

/** Suffixes that stay behind a colon; other colons are the tags of Ollama's names. */
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
