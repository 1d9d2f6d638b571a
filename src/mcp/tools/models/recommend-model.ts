import { z } from "zod";
import { defineTool } from "../../tool.ts";

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
