import type Anthropic from "@anthropic-ai/sdk";
import type {
  ChatRequest$Outbound,
  MessagesRequest$Outbound,
  ResponsesRequest$Outbound,
} from "@openrouter/sdk/models";
import type OpenAI from "openai";

/** The requests of the chat-like routes as their SDKs type them, by the dialect and the package. */
export interface RequestTypes {
  "openai-chat of openai": OpenAI.ChatCompletionCreateParamsNonStreaming;
  "openai-responses of openai": OpenAI.Responses.ResponseCreateParamsNonStreaming;
  "anthropic-messages of @anthropic-ai/sdk": Anthropic.Beta.Messages.MessageCreateParamsNonStreaming;
  "openai-chat of @openrouter/sdk": ChatRequest$Outbound;
  "openai-responses of @openrouter/sdk": ResponsesRequest$Outbound;
  "anthropic-messages of @openrouter/sdk": MessagesRequest$Outbound;
}
