import { z } from "zod";
import { addressRangeSchema } from "./setting-schemas.ts";

const modelName = z.string().trim().min(1, "expected a model id").max(256);

const text = z.string().min(1).max(256);

/** What a request must say for an entry to count: each named member has to match. */
const conditionSchema = z
  .strictObject({
    key: text.describe("The name or the hash of the key."),
    tag: text.describe("A tag of the request: in `metadata.tags`, or in the header of tags."),
    header: z
      .record(text, z.string().max(1_024))
      .describe("Request headers by name, with their values."),
    metadata: z
      .record(text, z.union([z.string().max(1_024), z.number(), z.boolean()]))
      .describe("Members of the request's `metadata`, with their values."),
  })
  .partial();

const entrySchema = z.strictObject({
  model: z
    .union([modelName, z.array(modelName).min(1).max(10)])
    .describe("The model, or a list of which the others are fallbacks."),
  weight: z
    .number()
    .positive("expected a weight above 0")
    .max(1_000_000)
    .optional()
    .describe("The share of the requests, relative to the other weights."),
  when: conditionSchema.optional().describe("What a request must say for the entry to count."),
});

/** What a name means: a model; a list of fallbacks; or entries with weights or conditions. */
export const aliasTargetSchema = z.union([
  modelName,
  z
    .array(z.union([modelName, entrySchema]))
    .min(1)
    .max(50),
]);

/** A name without an owner, so that it can be no model's id. */
export const aliasNameSchema = z
  .string()
  .regex(/^[a-zA-Z0-9][\w.:-]{0,127}$/, "expected a name of letters, digits, dots and dashes");

/** Entries of `aliases:` by name. */
export const aliasesSchema = z.record(aliasNameSchema, aliasTargetSchema);

/** Keys of doors for callers who cannot send any, and the networks they may be in. */
export const doorsSchema = z
  .strictObject({
    ollama: z.strictObject({
      key: z.string().min(1, "expected an LLM key"),
      networks: z.array(addressRangeSchema).optional(),
    }),
  })
  .partial();
