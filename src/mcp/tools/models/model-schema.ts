import { z } from "zod";

const perMillion = z.looseObject({ input_per_1m: z.number(), output_per_1m: z.number() });

/** What tools read of a model object; everything else in it passes. */
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
