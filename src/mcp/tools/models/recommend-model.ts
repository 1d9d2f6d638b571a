import { z } from "zod";
import { defineTool } from "../../tool.ts";

/** Recommends models for a task. */
export const recommendModel = defineTool({
  name: "recommend_model",
  title: "Recommend a model",
  description:
    "Ranks the models that the caller can reach for a task, by capabilities, price, context, health and measured latency, and " +
    "says why each has its place.",
  scope: null,
  effect: "nothing",
  endpoint: "GET /models/recommend",
  input: z.object({
    task: z
      .string("is required: what the model is for")
      .trim()
      .min(1, "is required: what the model is for")
      .max(500, "must have at most 500 characters")
      .describe("translation, coding, reasoning, vision, cheap, or the task in words."),
    free_only: z.boolean().default(false).describe("Models that cost nothing."),
    max_input_per_1m: z
      .number("must be a number")
      .min(0, "must be at least 0")
      .optional()
      .describe("Highest input price in USD per million tokens."),
    min_context: z
      .int("must be a whole number")
      .min(0, "must be at least 0")
      .optional()
      .describe("Context tokens at least."),
    limit: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(50, "must be at most 50")
      .default(5),
  }),
  run: (query, { ask }) => ask({ endpoint: "GET /models/recommend", query }),
});
