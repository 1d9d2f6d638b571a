import type { WireEvent } from "../play.ts";
import { firstChoice, type SimulatedCall, type SimulatedReply } from "../reply.ts";

/** An event without what every event has: its sequence number. */
export interface ItemEvent {
  type: string;
  fields: Record<string, unknown>;
  content?: WireEvent["content"];
}

/** One output item as it is in the end, with the events that build it up. */
export interface OutputItem {
  whole: Record<string, unknown>;
  events(outputIndex: number): ItemEvent[];
}

/** The output items of a reply: reasoning, then a message or tool calls. */
export function outputItems(reply: SimulatedReply, include: readonly string[]): OutputItem[] {
  const choice = firstChoice(reply);
  const isEmpty = choice.calls.length === 0 && choice.text.length === 0 && choice.finish === "stop";
  return [
    ...(choice.reasoning.length > 0 ? [reasoningItem(reply.seed, choice.reasoning, include)] : []),
    ...(choice.text.length > 0 || isEmpty
      ? [messageItem(reply.seed, choice.text, choice.finish)]
      : []),
    ...choice.calls.map(callItem),
  ];
}

function reasoningItem(seed: string, tokens: string[], include: readonly string[]): OutputItem {
  const id = `rs_${seed}`;
  const part = { type: "summary_text", text: tokens.join("") };
  const encrypted = include.includes("reasoning.encrypted_content")
    ? { encrypted_content: Buffer.from(part.text).toString("base64") }
    : {};
  const whole = { id, type: "reasoning", summary: [part], ...encrypted };
  return {
    whole,
    events(outputIndex) {
      const at = { item_id: id, output_index: outputIndex, summary_index: 0 };
      return [
        added(outputIndex, { id, type: "reasoning", summary: [] }),
        {
          type: "response.reasoning_summary_part.added",
          fields: { ...at, part: { ...part, text: "" } },
        },
        ...tokens.map((delta) => token("response.reasoning_summary_text.delta", { ...at, delta })),
        { type: "response.reasoning_summary_text.done", fields: { ...at, text: part.text } },
        { type: "response.reasoning_summary_part.done", fields: { ...at, part } },
        done(outputIndex, whole),
      ];
    },
  };
}

function messageItem(seed: string, tokens: string[], finish: string): OutputItem {
  const head = { id: `msg_${seed}`, type: "message", role: "assistant" };
  const part = { type: "output_text", text: tokens.join(""), annotations: [], logprobs: [] };
  const whole = {
    ...head,
    status: finish === "length" ? "incomplete" : "completed",
    content: [part],
  };
  return {
    whole,
    events(outputIndex) {
      const at = { item_id: head.id, output_index: outputIndex, content_index: 0 };
      return [
        added(outputIndex, { ...head, status: "in_progress", content: [] }),
        { type: "response.content_part.added", fields: { ...at, part: { ...part, text: "" } } },
        ...tokens.map((delta) =>
          token("response.output_text.delta", { ...at, delta, logprobs: [] }),
        ),
        { type: "response.output_text.done", fields: { ...at, text: part.text, logprobs: [] } },
        { type: "response.content_part.done", fields: { ...at, part } },
        done(outputIndex, whole),
      ];
    },
  };
}

function callItem(call: SimulatedCall): OutputItem {
  const isCustom = call.kind === "custom";
  const field = isCustom ? "input" : "arguments";
  const stem = isCustom ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const head = {
    id: call.id.replace("call_", isCustom ? "ctc_" : "fc_"),
    type: isCustom ? "custom_tool_call" : "function_call",
    call_id: call.id,
    name: call.name,
  };
  const text = call.argumentTokens.join("");
  const whole = { ...head, status: "completed", [field]: text };
  return {
    whole,
    events(outputIndex) {
      const at = { item_id: head.id, output_index: outputIndex };
      return [
        added(outputIndex, { ...head, status: "in_progress", [field]: "" }),
        ...call.argumentTokens.map((delta) => token(`${stem}.delta`, { ...at, delta })),
        {
          type: `${stem}.done`,
          fields: { ...at, [field]: text, ...(isCustom ? {} : { name: call.name }) },
        },
        done(outputIndex, whole),
      ];
    },
  };
}

const added = (outputIndex: number, item: Record<string, unknown>): ItemEvent => ({
  type: "response.output_item.added",
  fields: { output_index: outputIndex, item },
});

const done = (outputIndex: number, item: Record<string, unknown>): ItemEvent => ({
  type: "response.output_item.done",
  fields: { output_index: outputIndex, item },
});

const token = (type: string, fields: Record<string, unknown>): ItemEvent => ({
  type,
  fields,
  content: true,
});
