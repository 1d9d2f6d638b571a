import { z } from "zod";
import { replayedHeader } from "../../../http/endpoint.ts";
import { lowerBrandHeader } from "../../../platform/kernel/brand.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { ToolContext } from "../../tool.ts";
import type { InnerCall, InnerAnswer } from "../../../http/request-context.ts";

/** The members that results of models have beside what was made. */
export const answeredFields = {
  generation_id: z
    .string()
    .optional()
    .describe(
      "Id of the generation record, which explains the charge; absent where an earlier result is repeated.",
    ),
  cost: z.number().optional().describe("USD that was charged; absent where nothing tells it."),
  translation_loss: z
    .string()
    .optional()
    .describe("Fields of the request that the provider does not take."),
};

const refusalSchema = z.looseObject({ error: z.looseObject({ message: z.string() }) });

/**
 * Asks a model. Throws the `GatewayError` that refuses the call, and `conflict` for a repetition
 * whose answer was not kept.
 */
export async function askModel(
  { request }: Pick<ToolContext, "request">,
  call: InnerCall,
): Promise<InnerAnswer> {
  const answer = await request(call);
  if (answer.status < 400) return answer;
  throw new GatewayError("conflict", refusalSchema.parse(answer.body).error.message, {
    param: "idempotency_key",
  });
}

const usageSchema = z.looseObject({ cost: z.number().optional() }).optional();

const isRepeated = ({ headers }: Pick<InnerAnswer, "headers">): boolean =>
  headers[replayedHeader.toLowerCase()] !== undefined;

/** Returns what an answer of a model says of its call, as `answeredFields` has it. */
export function answeredCall(answer: Pick<InnerAnswer, "headers">, usage: unknown) {
  const { headers } = answer;
  const { cost } = usageSchema.safeParse(usage).data ?? {};
  const loss = headers[lowerBrandHeader("Translation-Loss")];
  return {
    ...(!isRepeated(answer) && {
      generation_id: `gen_${headers[lowerBrandHeader("Trace-Id")] ?? ""}`,
    }),
    ...(cost !== undefined && { cost }),
    ...(loss !== undefined && { translation_loss: loss }),
  };
}
