/** The tasks that models are recommended for. */
export const modelTasks = ["translation", "coding", "reasoning", "vision", "cheap"] as const;

/** A task that models are recommended for. */
export type ModelTask = (typeof modelTasks)[number];

interface Prices {
  input_per_1m: number;
  output_per_1m: number;
}

/** The members of a model object that judging a model needs. */
export interface JudgedModel {
  id: string;
  category: string;
  context_length: number;
  capabilities: readonly string[];
  pricing: Prices & { billing?: string | undefined; list_pricing?: Prices | undefined };
  reasoning?: unknown;
}

/** The smallest context, in tokens, for a repository's files and an agent's turns. */
const codingContextMin = 32_000;

/**
 * USD per million tokens, three parts of input to one of output, below which a model counts as
 * cheap.
 */
const cheapBlendedMax = 1;

/** The costs of a model for its caller. */
export interface ModelCost {
  inputPer1m: number;
  /** Three parts of input to one of output, as in typical conversations. */
  blendedPer1m: number;
  /** Whether no provider charges for it. */
  isFree: boolean;
}

/**
 * Returns the cost of a model: the provider's own price where that bills the caller. A provider's
 * unknown price counts as higher than any other.
 */
export function priceOf({ pricing }: Pick<JudgedModel, "pricing">): ModelCost {
  const isByok = pricing.billing === "byok";
  const { input_per_1m: inputPer1m, output_per_1m: outputPer1m } =
    isByok && pricing.list_pricing ? pricing.list_pricing : pricing;
  const isUnknown = isByok && pricing.list_pricing === undefined;
  return {
    inputPer1m: isUnknown ? Number.POSITIVE_INFINITY : inputPer1m,
    blendedPer1m: isUnknown ? Number.POSITIVE_INFINITY : (3 * inputPer1m + outputPer1m) / 4,
    isFree: !isByok && inputPer1m === 0 && outputPer1m === 0,
  };
}

/** Returns whether a model has a capability, in any spelling of its name. */
const hasCapability = (
  { capabilities }: Pick<JudgedModel, "capabilities">,
  wanted: string,
): boolean =>
  capabilities.some((capability) => capability.toLowerCase().replaceAll("_", "-") === wanted);

/** Returns whether a model reasons before it answers. */
const canReason = (model: JudgedModel): boolean =>
  model.reasoning !== undefined || hasCapability(model, "reasoning");

const fits: Readonly<Record<ModelTask, (model: JudgedModel) => boolean>> = {
  translation: ({ category }) => category === "text",
  coding: (model) =>
    model.category === "text" &&
    hasCapability(model, "function-calling") &&
    model.context_length >= codingContextMin,
  reasoning: canReason,
  vision: (model) => hasCapability(model, "vision"),
  cheap: (model) => priceOf(model).blendedPer1m <= cheapBlendedMax,
};

/** Returns whether a model can do a task. */
export const fitsTask = (task: ModelTask, model: JudgedModel): boolean => fits[task](model);

/** The present condition of a model, over all of its providers. */
export interface ModelCondition {
  status: "healthy" | "degraded" | "down" | "no_signal";
  /** 0 to 1; null without traffic. */
  errorRate: number | null;
  /**
   * Milliseconds to the first token at the fastest provider, median of the last minutes; null where
   * nothing was measured.
   */
  firstTokenMs: number | null;
}

/** A model that may be recommended. */
export interface RecommendedFrom<Model extends JudgedModel> {
  model: Model;
  condition: ModelCondition;
}

/** The request for a recommendation. */
export interface Recommendation {
  /** A known task, or the task in words. */
  task: string;
  freeOnly: boolean;
  maxInputPer1m?: number | undefined;
  minContext?: number | undefined;
}

/** The parts of a score, each from 0 to 1. */
export const scoreParts = ["capability", "price", "context", "health", "latency"] as const;
export type ScorePart = (typeof scoreParts)[number];
type Weights = Readonly<Record<ScorePart, number>>;

/** A task as it was understood. */
export type UnderstoodTask = ModelTask | "general";

/** The weights of the parts for each task; each row sums to 1. */
const weights: Readonly<Record<UnderstoodTask, Weights>> = {
  translation: { capability: 0.1, price: 0.35, context: 0.1, health: 0.2, latency: 0.25 },
  coding: { capability: 0.4, price: 0.15, context: 0.2, health: 0.15, latency: 0.1 },
  reasoning: { capability: 0.45, price: 0.15, context: 0.1, health: 0.2, latency: 0.1 },
  vision: { capability: 0.2, price: 0.25, context: 0.1, health: 0.25, latency: 0.2 },
  cheap: { capability: 0.05, price: 0.65, context: 0.05, health: 0.15, latency: 0.1 },
  general: { capability: 0.25, price: 0.25, context: 0.15, health: 0.2, latency: 0.15 },
};

/** Patterns by which a task is recognised in a sentence; the first match counts. */
const taskWords: readonly [task: ModelTask, words: RegExp][] = [
  ["vision", /\b(?:vision|images?|pictures?|photos?|screenshots?|charts?|ocr|scan(?:s|ned)?)\b/i],
  ["translation", /\b(?:translat\w*|locali[sz]\w*)\b/i],
  [
    "coding",
    /\b(?:cod(?:e|es|ing)|programming|refactor\w*|debug\w*|typescript|python|sql|agents?|tools?)\b/i,
  ],
  [
    "reasoning",
    /\b(?:reason\w*|math\w*|proofs?|logic\w*|plan(?:s|ning)?|analy[sz]\w*|research)\b/i,
  ],
  ["cheap", /\b(?:cheap\w*|bulk|classif\w*|budget|inexpensive)\b/i],
];

/** Returns the task that a text means; `general` where it names none. */
export function understandTask(text: string): UnderstoodTask {
  const named = modelTasks.find((task) => task === text.trim().toLowerCase());
  return named ?? taskWords.find(([, words]) => words.test(text))?.[0] ?? "general";
}

/** A model in the ranking. */
export interface RankedModel<Model extends JudgedModel> extends RecommendedFrom<Model> {
  /** 0 to 1. */
  score: number;
  scores: Record<ScorePart, number>;
  /** The reasons for its place, in words. */
  reasons: string[];
}

const healthScores: Readonly<Record<ModelCondition["status"], number>> = {
  healthy: 1,
  no_signal: 0.6,
  degraded: 0.3,
  down: 0,
};

/** The score of an unmeasured latency, which is neither good nor bad. */
const unmeasured = 0.5;

/** Returns 1 up to `best`, 0 from `worst` on, and a logarithmic scale in between. */
const onScale = (value: number, best: number, worst: number): number => {
  if (value === best) return 1;
  const share =
    (Math.log(Math.max(value, 1e-9)) - Math.log(worst)) / (Math.log(best) - Math.log(worst));
  return Math.min(1, Math.max(0, share));
};

/** Returns how many of the capabilities that help a task a model has. */
function capabilityScore(task: UnderstoodTask, model: JudgedModel): number {
  const parts: Readonly<Record<UnderstoodTask, readonly boolean[]>> = {
    translation: [true, canReason(model)],
    coding: [
      hasCapability(model, "function-calling"),
      canReason(model),
      model.context_length >= 128_000,
    ],
    reasoning: [canReason(model), hasCapability(model, "function-calling")],
    vision: [hasCapability(model, "vision"), canReason(model)],
    cheap: [hasCapability(model, "function-calling")],
    general: [
      hasCapability(model, "function-calling"),
      canReason(model),
      hasCapability(model, "vision"),
    ],
  };
  return parts[task].filter(Boolean).length / parts[task].length;
}

function scoresOf(
  task: UnderstoodTask,
  { model, condition }: RecommendedFrom<JudgedModel>,
): Record<ScorePart, number> {
  const { blendedPer1m, isFree } = priceOf(model);
  return {
    capability: capabilityScore(task, model),
    price: isFree ? 1 : onScale(blendedPer1m, 0.05, 20),
    context: onScale(model.context_length, 1_000_000, 8_000),
    health: healthScores[condition.status],
    latency:
      condition.firstTokenMs === null ? unmeasured : onScale(condition.firstTokenMs, 200, 5_000),
  };
}

const usd = (amount: number): string => `${Number(amount.toFixed(4))} USD`;

function priceReason(model: JudgedModel): string {
  const { inputPer1m, blendedPer1m, isFree } = priceOf(model);
  if (isFree) return "costs nothing";
  if (!Number.isFinite(inputPer1m))
    return "billed by its provider at a price that is not known here";
  const biller = model.pricing.billing === "byok" ? ", billed by its provider on your own key" : "";
  return `${usd(inputPer1m)} per million input tokens, ${usd(blendedPer1m)} on average with output${biller}`;
}

function reasonsOf(
  task: UnderstoodTask,
  { model, condition }: RecommendedFrom<JudgedModel>,
): string[] {
  const can = [
    ...(hasCapability(model, "function-calling") ? ["calls functions"] : []),
    ...(canReason(model) ? ["reasons"] : []),
    ...(hasCapability(model, "vision") ? ["reads pictures"] : []),
  ];
  const { status, errorRate, firstTokenMs } = condition;
  const failing =
    errorRate === null ? "" : `, ${Math.round(errorRate * 1000) / 10} % of requests failed lately`;
  return [
    `for ${task}: ${can.length === 0 ? "plain text" : can.join(", ")}`,
    priceReason(model),
    `${model.context_length} tokens of context`,
    status === "no_signal" ? "no recent traffic to judge its health by" : `${status}${failing}`,
    ...(firstTokenMs === null
      ? []
      : [`first token after ${Math.round(firstTokenMs)} ms (median of the last five minutes)`]),
  ];
}

/** The numbers of models that were not ranked, by reason. */
export interface LeftOut {
  task: number;
  price: number;
  context: number;
  down: number;
}

/**
 * Ranks models for a task, best first and with the reasons. Models that cannot do it, or that the
 * request excludes, are left out.
 */
export function recommendModels<Model extends JudgedModel>(
  candidates: readonly RecommendedFrom<Model>[],
  wanted: Recommendation,
): { understood: UnderstoodTask; ranked: RankedModel<Model>[]; leftOut: LeftOut } {
  const understood = understandTask(wanted.task);
  const leftOut: LeftOut = { task: 0, price: 0, context: 0, down: 0 };
  const ranked: RankedModel<Model>[] = [];
  for (const candidate of candidates) {
    const obstacle = obstacleOf(candidate, { wanted, understood });
    if (obstacle !== undefined) {
      leftOut[obstacle] += 1;
      continue;
    }
    const scores = scoresOf(understood, candidate);
    const score = scoreParts.reduce(
      (sum, part) => sum + weights[understood][part] * scores[part],
      0,
    );
    ranked.push({ ...candidate, score, scores, reasons: reasonsOf(understood, candidate) });
  }
  ranked.sort((one, other) => other.score - one.score || (one.model.id < other.model.id ? -1 : 1));
  return { understood, ranked, leftOut };
}

function obstacleOf(
  { model, condition }: RecommendedFrom<JudgedModel>,
  { wanted, understood }: { wanted: Recommendation; understood: UnderstoodTask },
): keyof LeftOut | undefined {
  const { inputPer1m, isFree } = priceOf(model);
  if (understood !== "general" && understood !== "cheap" && !fitsTask(understood, model))
    return "task";
  if (
    (wanted.freeOnly && !isFree) ||
    (wanted.maxInputPer1m !== undefined && inputPer1m > wanted.maxInputPer1m)
  )
    return "price";
  if (wanted.minContext !== undefined && model.context_length < wanted.minContext) return "context";
  return condition.status === "down" ? "down" : undefined;
}
