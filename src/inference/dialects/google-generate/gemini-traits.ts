/** What tells one generation of Gemini from another on the wire. */
export interface GeminiTraits {
  /** How thinking is bounded: by a number of tokens, by the name of a level, or not at all. */
  thinking: "budget" | "level" | "none";
  /** Bounds of `thinkingBudget`. */
  budgetTokens: { min: number; max: number };
  /** Whether thinking can be turned off. */
  canStopThinking: boolean;
  /** The level that thinks least. */
  leastLevel: "MINIMAL" | "LOW";
  /** Calls and results carry an id; Gemini 2 answers 400 "Unknown name" to it on Vertex AI. */
  callIds: boolean;
  /** JSON may be asked for while functions are offered; 400 "Function calling with a response mime type" elsewhere. */
  formatBesideTools: boolean;
  /** Frequency and presence penalties are taken; 400 "Penalty is not enabled for this model" elsewhere. */
  penalties: boolean;
  /** The first call of every step must carry a thought signature, or the answer is 400. */
  needsSignatures: boolean;
}

const newest: GeminiTraits = {
  thinking: "level",
  budgetTokens: { min: 128, max: 32_768 },
  canStopThinking: false,
  leastLevel: "LOW",
  callIds: true,
  formatBesideTools: true,
  penalties: false,
  needsSignatures: true,
};

const older = { callIds: false, formatBesideTools: false, needsSignatures: false } as const;

/**
 * The traits of a model by its wire name; unknown names count as the newest generation.
 * Source: ai.google.dev/gemini-api/docs/thinking and .../thought-signatures (2026-11).
 */
export function geminiTraits(upstreamModel: string): GeminiTraits {
  const name = upstreamModel.slice(upstreamModel.lastIndexOf("/") + 1);
  const gemma = Number(/^gemma-(\d+)/.exec(name)?.[1] ?? NaN);
  if (gemma >= 4) return { ...newest, ...older, leastLevel: "MINIMAL" };
  if (/^(?:gemma|learnlm)/.test(name)) return { ...newest, ...older, thinking: "none" };
  const isFlash = name.includes("flash");
  const generation = Number(/^gemini-(\d+(?:\.\d+)?)/.exec(name)?.[1] ?? Infinity);
  if (generation >= 3) return { ...newest, leastLevel: isFlash ? "MINIMAL" : "LOW" };
  if (generation < 2.5) return { ...newest, ...older, thinking: "none", penalties: true };
  if (/image|tts/.test(name)) return { ...newest, ...older, thinking: "none" };
  if (!isFlash) return { ...newest, ...older, thinking: "budget" };
  const min = name.includes("lite") ? 512 : 1;
  return {
    ...newest,
    ...older,
    thinking: "budget",
    budgetTokens: { min, max: 24_576 },
    canStopThinking: true,
  };
}
