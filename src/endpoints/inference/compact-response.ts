import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { openaiResponses } from "../../inference/dialects/openai-responses/openai-responses.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { inferenceBodyBytesMax } from "./read-call.ts";

/**
 * OpenAI's compaction, which is not offered: what a provider makes of a conversation is sealed for that
 * provider, and could not be continued anywhere else.
 */
export const compactResponse = defineEndpoint<Dependencies>({
  method: "POST",
  path: "/responses/compact",
  base: "api",
  access: { llmKey: true },
  counting: "at-door",
  summary: "Not offered: compaction of a conversation.",
  tag: "Inference",
  bodyBytesMax: inferenceBodyBytesMax,
  rawBody: z.looseObject({ model: z.string() }),
  response: z.looseObject({}),
  encodeError: openaiResponses.encodeError,
  handle() {
    const message = "Compaction is not offered here. Summarise the conversation with a request of your own, or go on without.";
    throw new GatewayError("not_found", message);
  },
});
