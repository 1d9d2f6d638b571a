import { z } from "zod";

const item = z.looseObject({ type: z.string() });
const sequence = { sequence_number: z.int() };

/** One chunk of a chat stream; the last one before `[DONE]` has the usage, the charge and the routing facts. */
export const chatChunkSchema = z.looseObject({
  id: z.string(), object: z.literal("chat.completion.chunk"), created: z.int(), model: z.string(),
  choices: z.array(z.looseObject({
    index: z.int(), finish_reason: z.enum(["stop", "length", "tool_calls", "content_filter", "error"]).nullish(),
    delta: z.looseObject({
      role: z.string().optional(), content: z.string().nullish(), reasoning: z.string().nullish(),
      tool_calls: z.array(z.looseObject({ index: z.int() })).optional(),
    }),
  })),
  usage: z.looseObject({
    prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int(), cost: z.number().optional(),
  }).nullish(),
}).meta({ id: "ChatCompletionChunk" });

/** One event of a Messages stream; `event:` and `type` say the same. */
export const messageEventSchema = z.union([
  z.looseObject({ type: z.literal("message_start"), message: z.looseObject({ id: z.string(), model: z.string() }) }),
  z.looseObject({ type: z.literal("content_block_start"), index: z.int(), content_block: item }),
  z.looseObject({ type: z.literal("content_block_delta"), index: z.int(), delta: item }),
  z.looseObject({ type: z.literal("content_block_stop"), index: z.int() }),
  z.looseObject({
    type: z.literal("message_delta"), delta: z.looseObject({ stop_reason: z.string().nullish() }),
    usage: z.looseObject({ output_tokens: z.int() }),
  }),
  z.looseObject({ type: z.literal("message_stop") }),
  z.looseObject({ type: z.literal("ping") }),
  z.looseObject({ type: z.literal("error"), error: z.looseObject({ type: z.string(), message: z.string() }) }),
]).meta({ id: "MessageStreamEvent" });

const lifecycle = ["created", "queued", "in_progress", "completed", "incomplete", "failed", "cancelled"] as const;

/** One event of a Responses stream; `event:` and `type` say the same. */
export const responseEventSchema = z.union([
  z.looseObject({
    ...sequence, type: z.enum(lifecycle.map((state) => `response.${state}` as const)),
    response: z.looseObject({ id: z.string(), status: z.string() }),
  }),
  z.looseObject({
    ...sequence, type: z.enum(["response.output_item.added", "response.output_item.done"]), output_index: z.int(), item,
  }),
  z.looseObject({
    ...sequence, type: z.enum(["response.content_part.added", "response.content_part.done"]), item_id: z.string(), output_index: z.int(),
    content_index: z.int(), part: item,
  }),
  z.looseObject({ ...sequence, type: z.literal("response.output_text.delta"), item_id: z.string(), delta: z.string() }),
  z.looseObject({ ...sequence, type: z.literal("response.output_text.done"), item_id: z.string(), text: z.string() }),
  z.looseObject({ ...sequence, type: z.literal("response.function_call_arguments.delta"), item_id: z.string(), delta: z.string() }),
  z.looseObject({ ...sequence, type: z.literal("response.function_call_arguments.done"), item_id: z.string(), arguments: z.string() }),
  z.looseObject({ type: z.literal("error"), message: z.string() }),
  z.looseObject({ type: z.string().describe("Events of reasoning, refusals, annotations and other tools, and the routing facts.") }),
]).meta({ id: "ResponseStreamEvent" });
