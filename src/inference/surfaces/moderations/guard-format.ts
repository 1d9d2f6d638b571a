import type { ChatQuestion } from "../chat-question.ts";

/** How a family of guard models is asked, and what its words mean. */
export interface GuardFormat {
  /** The questions that one text takes; for most families one. */
  questions(text: string): readonly ChatQuestion[];
  /**
   * What the reply to one of the questions says; undefined when it says nothing that the family
   * says.
   */
  read(reply: string, question: number): Verdict | undefined;
  /**
   * Tokens that the questions to one text have beside it, those of the model's own template
   * included.
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

/** What a guard model said of one text. */
export interface Verdict {
  flagged: boolean;
  /** The guard model's own labels. */
  labels: readonly string[];
  /** The contract's categories that they stand for; labels may stand for none. */
  categories: readonly Category[];
}

/** Nothing was found. */
export const harmless: Verdict = { flagged: false, labels: [], categories: [] };

/** A verdict of these labels, with the categories that a table has for them. */
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

/** Several verdicts on one text. */
export const together = (verdicts: readonly Verdict[]): Verdict => ({
  flagged: verdicts.some(({ flagged }) => flagged),
  labels: [...new Set(verdicts.flatMap(({ labels }) => labels))],
  categories: [...new Set(verdicts.flatMap((verdict) => verdict.categories))],
});

/** A result as clients read it. A guard model says yes or no, so scores are 1 or 0. */
export function resultOf({ flagged, labels, categories: found }: Verdict): object {
  const by = <Value>(value: (is: boolean) => Value): Record<string, Value> =>
    Object.fromEntries(categories.map((category) => [category, value(found.includes(category))]));
  return {
    flagged,
    categories: by((is) => is),
    category_scores: by(Number),
    guard_categories: labels,
  };
}
