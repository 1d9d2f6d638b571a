import type { ChatQuestion } from "../chat-question.ts";

/** The format of questions to a family of guard models, and of their answers. */
export interface GuardFormat {
  /** Returns the questions for one text; for most families one. */
  questions(text: string): readonly ChatQuestion[];
  /** Reads the reply to one of the questions; undefined when it is not in the family's form. */
  read(reply: string, question: number): Verdict | undefined;
  /**
   * Tokens of the questions beside the text itself, including those of the model's own template.
   */
  promptTokens: number;
}

/** The 13 categories of the contract, which are OpenAI's. */
export const categories = [
  "harassment",
  "harassment/threatening",
  "hate",
  "hate/threatening",
  "illicit",
  "illicit/violent",
  "self-harm",
  "self-harm/intent",
  "self-harm/instructions",
  "sexual",
  "sexual/minors",
  "violence",
  "violence/graphic",
] as const;

/** A category of the contract. */
export type Category = (typeof categories)[number];

/** A guard model's verdict on one text. */
export interface Verdict {
  flagged: boolean;
  /** The guard model's own labels. */
  labels: readonly string[];
  /** The contract's categories for them; a label may have none. */
  categories: readonly Category[];
}

/** The verdict that nothing was found. */
export const harmless: Verdict = { flagged: false, labels: [], categories: [] };

/** Returns a verdict of these labels, with their categories from a table. */
export const flaggedAs = (
  labels: readonly string[],
  table: Readonly<Record<string, readonly Category[]>>,
): Verdict => ({
  flagged: true,
  labels,
  categories: [
    ...new Set(
      labels.flatMap((label) => (Object.hasOwn(table, label) ? (table[label] ?? []) : [])),
    ),
  ],
});

/** Merges several verdicts on one text. */
export const together = (verdicts: readonly Verdict[]): Verdict => ({
  flagged: verdicts.some(({ flagged }) => flagged),
  labels: [...new Set(verdicts.flatMap(({ labels }) => labels))],
  categories: [...new Set(verdicts.flatMap((verdict) => verdict.categories))],
});

/**
 * Returns a result in the form that clients read. A guard model says yes or no, so scores are 1 or
 * 0.
 */
export function resultOf({ flagged, labels, categories: found }: Verdict): object {
  const by = <Value>(value: (is: boolean) => Value): Record<string, Value> =>
    Object.fromEntries(categories.map((category) => [category, value(found.includes(category))]));
  return {
    flagged,
    categories: by((is) => is),
    category_scores: by(Number),
    // OpenAI's clients expect it of every result; guard models judge nothing but text.
    category_applied_input_types: by(() => ["text"]),
    guard_categories: labels,
  };
}
