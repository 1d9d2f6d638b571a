/** What models are chosen for. */
export const modelTasks = ["translation", "coding", "reasoning", "vision", "cheap"] as const;

/** A task that models are chosen for. */
export type ModelTask = (typeof modelTasks)[number];

interface Prices {
  input_per_1m: number;
  output_per_1m: number;
}

/** What judging a model needs of its object. */
export interface JudgedModel {
  id: string;
  category: string;
  context_length: number;
  capabilities: readonly string[];
  pricing: Prices & { billing?: string | undefined; list_pricing?: Prices | undefined };
  reasoning?: unknown;
}

/** Context that a repository's files and an agent's turns need at least. */
const codingContextMin = 32_000;

/** USD per million tokens, three parts of input to one of output, below which a model counts as cheap. */
const cheapBlendedMax = 1;

/** What a model costs its caller. */
export interface ModelCost {
  inputPer1m: number;
  /** Three parts of input to one of output, as conversations have them. */
  blendedPer1m: number;
  /** Nothing is charged for it by anybody. */
  isFree: boolean;
}

/** The cost of a model: the provider's own price where that bills the caller. A provider's unknown price counts as above all others. */
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

/** Whether a model has a capability, however its name is spelt. */
export const hasCapability = (
  { capabilities }: Pick<JudgedModel, "capabilities">,
  wanted: string,
): boolean =>
  capabilities.some((capability) => capability.toLowerCase().replaceAll("_", "-") === wanted);

/** Whether a model thinks before it answers. */
export const canReason = (model: JudgedModel): boolean =>
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

/** Whether a model can do a task. */
export const fitsTask = (task: ModelTask, model: JudgedModel): boolean => fits[task](model);
