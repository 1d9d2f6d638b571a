import { z } from "zod";
import { defineEndpoint } from "../../../access/define-endpoint.ts";
import type { JsonObject } from "../../../inference/canonical/json.ts";
import { checkCountRequest } from "../../../inference/dialects/anthropic-messages/request-schema.ts";
import { countTokens } from "../../../inference/pipeline/unbilled-requests.ts";
import { countedRequest } from "../../../inference/surfaces/bedrock/count-request.ts";
import { messagesReader, tokenCountHeader } from "../../inference/messages.ts";
import { readCall, type CallReader, type CallServices } from "../../inference/read-call.ts";
import { bedrockDoor, bedrockPath, modelOf } from "./door.ts";

/** Counts the input tokens of a request to Bedrock, in either form. */
export const bedrockCountTokens = defineEndpoint<CallServices>({
  ...bedrockDoor,
  ...bedrockPath("count-tokens"),
  summary: "Count the input tokens of a request to Bedrock.",
  description:
    "For Amazon's clients: `input.converse` or `input.invokeModel`. The provider's own count if it offers one, otherwise an estimate. " +
    "Free of charge.",
  rawBody: z.looseObject({
    input: z
      .looseObject({
        converse: z.looseObject({}).optional().describe("A request of Converse."),
        invokeModel: z
          .looseObject({ body: z.string().describe("Base64.") })
          .optional()
          .describe("A request of InvokeModel, with the body of Messages."),
      })
      .describe("One of the two forms."),
  }),
  response: () => z.object({ inputTokens: z.int().describe("Number of tokens.") }),
  async handle(context, deps) {
    const model = modelOf(context);
    const reader: CallReader = {
      ...messagesReader,
      validate: checkCountRequest,
      reshape: (body) => ({ body: countedRequest(body as JsonObject, model), losses: [] }),
    };
    const call = await readCall(context, reader, deps);
    const { inputTokens, source } = await countTokens(deps.inference, call);
    return context.json({ inputTokens }, { headers: { [tokenCountHeader]: source } });
  },
});
