import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { anthropicMessages } from "../../inference/dialects/anthropic-messages/anthropic-messages.ts";
import { countTokensRequestSchema } from "../../inference/dialects/anthropic-messages/request-schema.ts";
import { validateCountEnvelope } from "../../inference/dialects/anthropic-messages/validate-envelope.ts";
import { countTokens } from "../../inference/count-tokens.ts";
import { brandHeader } from "../../platform/lib/brand.ts";
import type { Dependencies } from "../dependencies.ts";
import { inMessagesWords } from "./in-messages-words.ts";
import { messagesReader } from "./messages.ts";
import { inferenceBodyBytesMax, readCall } from "./read-call.ts";

const sourceHeader = brandHeader("Token-Count").toLowerCase();

/** How many input tokens a Messages request has. */
export const countMessageTokens = defineEndpoint<Dependencies>({
  method: "POST",
  path: "/messages/count_tokens",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Count the input tokens of a message.",
  description:
    "The provider's own count where it counts, else an estimate; X-Service-Token-Count says `native` or `estimated`. " +
    "Costs nothing.",
  tag: "Inference",
  rawBody: countTokensRequestSchema,
  response: z.object({ input_tokens: z.int() }),
  encodeError: anthropicMessages.encodeError,
  async handle(context, dependencies) {
    const reader = { ...messagesReader, validate: validateCountEnvelope };
    const call = await readCall(context, reader, dependencies);
    const { inputTokens, source } = await inMessagesWords(call, dependencies, () =>
      countTokens(dependencies.inference, call),
    );
    return context.json({ input_tokens: inputTokens }, { headers: { [sourceHeader]: source } });
  },
});
