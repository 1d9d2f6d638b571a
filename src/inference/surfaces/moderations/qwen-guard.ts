import { flaggedAs, harmless, type Category, type GuardFormat } from "./guard-format.ts";

/**
 * Qwen3Guard's categories. Unethical acts include hate, harassment and much else, so none of these
 * is assigned.
 */
const labels: Readonly<Record<string, readonly Category[]>> = {
  Violent: ["violence"],
  "Non-violent Illegal Acts": ["illicit"],
  "Sexual Content or Sexual Acts": ["sexual"],
  PII: [],
  "Suicide & Self-Harm": ["self-harm"],
  "Unethical Acts": [],
  "Politically Sensitive Topics": [],
  "Copyright Violation": [],
  Jailbreak: [],
};

/**
 * Qwen3Guard-Gen: the answer is a line `Safety: Safe|Unsafe|Controversial` and a line `Categories:
 * ...`. Controversial texts are flagged, too, and their labels say why. Source:
 * https://huggingface.co/Qwen/Qwen3Guard-Gen-8B
 */
export const qwenGuard: GuardFormat = {
  questions: (text) => [{ user: text, outputTokensMax: 128 }],
  read(reply) {
    const safety = /^\s*Safety:\s*(Safe|Unsafe|Controversial)\b/im.exec(reply)?.[1]?.toLowerCase();
    if (safety === undefined) return undefined;
    if (safety === "safe") return harmless;
    const named =
      /^\s*Categories:(.*)$/im
        .exec(reply)?.[1]
        ?.split(",")
        .map((label) => label.trim()) ?? [];
    const found = named.filter((label) => label !== "" && label.toLowerCase() !== "none");
    return flaggedAs(
      found.length > 0 ? found : [safety === "unsafe" ? "Unsafe" : "Controversial"],
      labels,
    );
  },
  promptTokens: 350,
};
