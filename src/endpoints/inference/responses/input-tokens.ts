import { z } from "zod";
import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import { defineEndpoint } from "../../../access/define-endpoint.ts";
import { openaiResponses } from "../../../inference/dialects/openai-responses/index.ts";
import { countTokens } from "../../../inference/pipeline/unbilled-requests.ts";
import { readStoredRequest } from "../../../inference/responses/stored-request.ts";
import type { Dependencies } from "../../dependencies.ts";
import { tokenCountHeader } from "../messages.ts";
import { inferenceBodyBytesMax, readCall, type CallServices } from "../read-call.ts";
import { conversationReader, conversationSchema } from "./compact-response.ts";
import { withConversation } from "./responses.ts";

/**
 * Counts the input tokens of a request for a response, including the conversation that it
 * continues.
 */
export const countResponseTokens = defineEndpoint<CallServices & Pick<Dependencies, "responses">>({
  method: "POST",
  path: "/responses/input_tokens",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Count the input tokens of a response.",
  description:
    "Returns an estimate for any model, including the responses that previous_response_id continues. " +
    "X-Service-Token-Count is `estimated`. Free of charge.",
  tag: "Inference",
  rawBody: conversationSchema,
  response: () => z.object({ object: z.literal("response.input_tokens"), input_tokens: z.int() }),
  encodeError: openaiResponses.encodeError,
  async handle(context, dependencies) {
    const { inference, responses } = dependencies;
    const sent = await readCall(context, conversationReader, dependencies);
    const { workspace } = context.caller as LlmKeyCaller;
    const { expanded, conversation } = await readStoredRequest(responses, {
      body: { ...sent.body, input: sent.body["input"] ?? [], store: false, background: false },
      workspaceId: workspace.id,
    });
    const call = expanded ? withConversation(sent, conversation) : sent;
    const { inputTokens, source } = await countTokens(inference, call);
    return context.json(
      { object: "response.input_tokens", input_tokens: inputTokens },
      { headers: { [tokenCountHeader]: source } },
    );
  },
});
