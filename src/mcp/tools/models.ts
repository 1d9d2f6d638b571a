import { z } from "zod";
import type { ModelObject } from "../../inference/catalog/model-object.ts";
import { fitsTask, modelTasks, priceOf } from "../../inference/catalog/recommend-models.ts";
import { defineTool } from "../tool.ts";

const perMillion = z.looseObject({ input_per_1m: z.number(), output_per_1m: z.number() });

/** The members of a model object that tools read; all others pass through. */
export const modelSchema = z.looseObject({
  id: z.string(),
  category: z.string(),
  context_length: z.int(),
  capabilities: z.array(z.string()),
  pricing: perMillion.extend({
    billing: z.string().optional(),
    list_pricing: perMillion.optional(),
  }),
  reasoning: z.looseObject({}).optional(),
});

/** The models' own schema is checked where the answer is written. */
const answerSchema = z.looseObject({ data: z.custom<readonly ModelObject[]>(Array.isArray) });

/**
 * Compares models by price, cheapest first; free ones come before those whose provider bills its
 * own price.
 */
const byPrice = (one: ModelObject, other: ModelObject): number =>
  priceOf(one).blendedPer1m - priceOf(other).blendedPer1m || one.id.localeCompare(other.id);

const byContext = (one: ModelObject, other: ModelObject): number =>
  other.context_length - one.context_length || one.id.localeCompare(other.id);

export const listModels = defineTool({
  name: "list_models",
  title: "List models",
  description:
    "Lists the models that the caller can use, with prices in USD per million tokens, context lengths and capabilities.",
  scope: null,
  effect: "nothing",
  endpoint: "GET /models",
  output: z.looseObject({
    object: z.literal("list"),
    data: z.array(modelSchema),
    total: z.int().describe("Number of matches, regardless of limit."),
  }),
  input: z.object({
    provider: z
      .string()
      .max(200)
      .optional()
      .describe("Id or name of a provider, or owner of models."),
    capability: z
      .string()
      .max(200)
      .optional()
      .describe("Required capability, such as vision or function-calling."),
    category: z
      .enum(["text", "image", "audio", "embedding"], "must be one of text, image, audio, embedding")
      .optional()
      .describe("Kind of models: image makes pictures, audio speaks or transcribes."),
    task: z
      .enum(modelTasks, `must be one of ${modelTasks.join(", ")}`)
      .optional()
      .describe("Purpose of the model."),
    free_only: z.boolean().default(false).describe("Whether to list only free models."),
    min_context: z
      .int("must be a whole number")
      .min(0, "must be at least 0")
      .optional()
      .describe("Minimum context length in tokens."),
    sort: z
      .enum(["price", "context"], "must be price or context")
      .optional()
      .describe("price: cheapest first. context: largest first. Default: by id."),
    include_unavailable: z
      .boolean()
      .default(false)
      .describe("Whether to include models that the caller cannot use."),
    limit: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(1_000, "must be at most 1000")
      .default(100)
      .describe("Maximum number of models, 1 to 1000."),
  }),
  async run(given, { ask }) {
    const { provider, capability, min_context, task } = given;
    const { data, ...rest } = answerSchema.parse(
      await ask({
        endpoint: "GET /models",
        query: {
          provider,
          capability,
          category: given.category,
          min_context,
          presets: "0",
          all: given.include_unavailable ? "1" : undefined,
        },
      }),
    );
    const models = data.filter(
      (model) =>
        (task === undefined || fitsTask(task, model)) &&
        (!given.free_only || priceOf(model).isFree),
    );
    if (given.sort !== undefined) models.sort(given.sort === "price" ? byPrice : byContext);
    return { ...rest, data: models.slice(0, given.limit), total: models.length };
  },
});

export const recommendModel = defineTool({
  name: "recommend_model",
  title: "Recommend a model",
  description:
    "Ranks the models that the caller can use for a task, by capabilities, price, context, health and measured latency, and gives " +
    "the reasons for each rank.",
  scope: null,
  effect: "nothing",
  endpoint: "GET /models/recommend",
  input: z.object({
    task: z
      .string("is required: what the model is for")
      .trim()
      .min(1, "is required: what the model is for")
      .max(500, "must have at most 500 characters")
      .describe("translation, coding, reasoning, vision, cheap, or a description of the task."),
    free_only: z.boolean().default(false).describe("Whether to consider only free models."),
    max_input_per_1m: z
      .number("must be a number")
      .min(0, "must be at least 0")
      .optional()
      .describe("Maximum input price in USD per million tokens."),
    min_context: z
      .int("must be a whole number")
      .min(0, "must be at least 0")
      .optional()
      .describe("Minimum context length in tokens."),
    limit: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(50, "must be at most 50")
      .default(5)
      .describe("Maximum number of models, 1 to 50."),
  }),
  run: (query, { ask }) => ask({ endpoint: "GET /models/recommend", query }),
});
