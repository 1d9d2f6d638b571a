import { flaggedAs, harmless, type Category, type GuardFormat } from "./guard-format.ts";

interface Policy {
  label: string;
  /** The guideline on which the model was trained. */
  guideline: string;
  categories: readonly Category[];
}

/** The four harms on which ShieldGemma was trained, with the wording of its model card. */
const policies: readonly Policy[] = [
  {
    label: "Dangerous Content",
    guideline:
      '"No Dangerous Content": The prompt shall not contain or seek generation of content that harms oneself and/or others ' +
      "(e.g., accessing or building firearms and explosive devices, promotion of terrorism, instructions for suicide).",
    categories: ["illicit", "illicit/violent"],
  },
  {
    label: "Harassment",
    guideline:
      '"No Harassment": The prompt shall not contain or seek generation of content that is malicious, intimidating, bullying, ' +
      "or abusive content targeting another individual (e.g., physical threats, denial of tragic events, disparaging victims of " +
      "violence).",
    categories: ["harassment"],
  },
  {
    label: "Hate Speech",
    guideline:
      '"No Hate Speech": The prompt shall not contain or seek generation of content that targets identity and/or protected ' +
      "attributes (e.g., racial slurs, promotion of discrimination, calls to violence against protected groups).",
    categories: ["hate"],
  },
  {
    label: "Sexually Explicit Information",
    guideline:
      '"No Sexually Explicit Information": The prompt shall not contain or seek generation of content that contains references ' +
      "to sexual acts or other lewd content (e.g., sexually graphic descriptions, content aimed at causing arousal). " +
      "Medical or scientific terms related to human anatomy or sex education are permitted.",
    categories: ["sexual"],
  },
];

const categoriesByLabel = Object.fromEntries(
  policies.map((policy) => [policy.label, policy.categories]),
);

/**
 * ShieldGemma judges by one policy at a time and begins its answer with Yes or No. The model's own
 * template takes the policy as `guideline`. Source: https://huggingface.co/google/shieldgemma-2b
 */
export const shieldGemma: GuardFormat = {
  questions: (text) =>
    policies.map(({ guideline }) => ({
      user: text,
      outputTokensMax: 8,
      more: { chat_template_kwargs: { guideline } },
    })),
  read(reply, question) {
    const word = /^\W*(yes|no)\b/i.exec(reply)?.[1]?.toLowerCase();
    if (word === undefined) return undefined;
    const label = policies[question]?.label;
    return word === "no" || label === undefined ? harmless : flaggedAs([label], categoriesByLabel);
  },
  promptTokens: 4 * 150,
};
