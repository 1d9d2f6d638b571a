import { openaiResponses } from "../../inference/dialects/openai-responses/openai-responses.ts";
import { validateResponsesEnvelope } from "../../inference/dialects/openai-responses/validate-envelope.ts";
import { chatCall } from "../../inference/chat-call.ts";
import type { ChatCall } from "../../inference/inference-call.ts";
import { metadataPlaceHeaders } from "../../inference/interpret/metadata-place.ts";
import type { ResponseItem } from "../../inference/stored-responses/stored-response.ts";
import { editMembers } from "../../platform/lib/json-members.ts";
import type { CallReader } from "./read-call.ts";

/** How requests in the Responses dialect are read. */
export const responsesReader: CallReader = {
  dialect: "openai-responses",
  idPrefix: "resp_",
  validate: validateResponsesEnvelope,
  decode: openaiResponses.decodeRequest,
  dialectHeaders: metadataPlaceHeaders,
};

/** The call with everything that is to be answered as its input, since no provider knows what is stored here. */
export function withConversation(call: ChatCall, conversation: readonly ResponseItem[]): ChatCall {
  const { dialect, dialectHeaders, signatures, nowSeconds } = call;
  return chatCall(call, {
    dialect,
    dialectHeaders,
    signatures,
    nowSeconds,
    decode: responsesReader.decode,
    body: { ...call.body, input: conversation },
    text: editMembers(call.text, new Map([["input", JSON.stringify(conversation)]])),
  });
}
