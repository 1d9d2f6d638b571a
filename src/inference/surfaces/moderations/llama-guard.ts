import { flaggedAs, harmless, type Category, type GuardFormat } from "./guard-format.ts";

/**
 * MLCommons' hazards as Llama Guard 3 and 4 number them; those without a category of OpenAI's map
 * to none.
 */
const hazards: Readonly<Record<string, readonly Category[]>> = {
  /* Violent crimes */ S1: ["violence", "illicit", "illicit/violent"],
  /* Non-violent crimes */ S2: ["illicit"],
  /* Sex-related crimes */ S3: ["sexual", "illicit"],
  /* Child sexual exploitation */ S4: ["sexual", "sexual/minors"],
  /* Defamation */ S5: [],
  /* Specialized advice */ S6: [],
  /* Privacy */ S7: [],
  /* Intellectual property */ S8: [],
  /* Indiscriminate weapons */ S9: ["illicit", "illicit/violent"],
  /* Hate */ S10: ["hate"],
  /* Suicide and self-harm */ S11: ["self-harm"],
  /* Sexual content */ S12: ["sexual"],
  /* Elections */ S13: [],
  /* Code interpreter abuse */ S14: [],
};

/**
 * Llama Guard 3 and 4: the template of the model contains its taxonomy, the answer is `safe`, or
 * `unsafe` with the hazards on the next line. Source:
 * https://www.llama.com/docs/model-cards-and-prompt-formats/llama-guard-4/
 */
export const llamaGuard: GuardFormat = {
  // All hazards together are some fifty tokens.
  questions: (text) => [{ user: text, outputTokensMax: 64 }],
  read(reply) {
    const [verdict = "", ...lines] = reply.trim().split("\n");
    const word = verdict.trim().toLowerCase();
    if (word === "safe") return harmless;
    if (!/^unsafe\b/.test(word)) return undefined;
    const labels = [...new Set(`${verdict}\n${lines.join("\n")}`.match(/\bS\d{1,2}\b/g) ?? [])];
    return flaggedAs(labels.length === 0 ? ["unsafe"] : labels, hazards);
  },
  promptTokens: 250,
};
