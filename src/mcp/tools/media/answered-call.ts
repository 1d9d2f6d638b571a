import { z } from "zod";
import type { InnerAnswer } from "../../../http/inner-call.ts";
import { lowerBrandHeader } from "../../../platform/kernel/brand.ts";

/** The members that results of models have beside what was made. */
export const answeredFields = {
  generation_id: z.string().describe("Id of the generation record, which explains the charge."),
  cost: z.number().optional().describe("USD that was charged; absent where nothing tells it."),
  translation_loss: z
    .string()
    .optional()
    .describe("Fields of the request that the provider does not take."),
};

const usageSchema = z.looseObject({ cost: z.number().optional() }).optional();

/** Returns what an answer of a model says of its call, as `answeredFields` has it. */
export function answeredCall({ headers }: Pick<InnerAnswer, "headers">, usage: unknown) {
  const { cost } = usageSchema.safeParse(usage).data ?? {};
  const loss = headers[lowerBrandHeader("Translation-Loss")];
  return {
    generation_id: `gen_${headers[lowerBrandHeader("Trace-Id")] ?? ""}`,
    ...(cost !== undefined && { cost }),
    ...(loss !== undefined && { translation_loss: loss }),
  };
}
