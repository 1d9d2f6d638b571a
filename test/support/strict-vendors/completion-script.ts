import type { ScriptedAnswer } from "../scripted-upstream/scripted-answer.ts";
import { json, type Script, sse, stream } from "../upstream/steps.ts";
import type { Fields } from "./rule.ts";

/** Tokens of each prompt and of each answer. */
const usageOf = (answers: number, prompts: number): Fields => ({
  prompt_tokens: 5 * prompts,
  completion_tokens: 3 * answers,
  total_tokens: 5 * prompts + 3 * answers,
});

const isTokens = (prompt: unknown): boolean =>
  Array.isArray(prompt) && prompt.every((each) => typeof each === "number");

/** Log probabilities as OpenAI's older API has them, where they are asked for. */
const logprobsOf = ({ logprobs }: Fields, text: string): Fields | null =>
  typeof logprobs === "number"
    ? {
        tokens: [text],
        token_logprobs: [-0.5],
        top_logprobs: [{ [text]: -0.5 }],
        text_offset: [0],
      }
    : null;

/** Returns how Mistral's endpoint for code answers: in the form of a chat, with the usage at the end. */
export function fimScript(body: Fields, { text = [] }: ScriptedAnswer): Script {
  const shared = { id: "fim-upstream", created: 1_700_000_000, model: body["model"] };
  const usage = usageOf(1, 1);
  if (body["stream"] !== true)
    return json({
      ...shared,
      object: "chat.completion",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: text.join(""), tool_calls: null },
          finish_reason: "stop",
        },
      ],
      usage,
    });
  const chunk = (delta: Fields, end: string | null, more: Fields = {}) =>
    sse({
      ...shared,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: end }],
      ...more,
    });
  return stream([
    chunk({ role: "assistant", content: "" }, null),
    ...text.map((piece) => chunk({ content: piece }, null)),
    chunk({ content: "" }, "stop", { usage }),
    sse("[DONE]"),
  ]);
}

/**
 * Returns how a server of plain completions answers a request: an answer to each prompt, `n` times,
 * that begins with the prompt where `echo` says so.
 */
export function completionScript(body: Fields, { text = [] }: ScriptedAnswer): Script {
  const { prompt, stream: isStreamed, stream_options: options, echo } = body;
  const prompts = Array.isArray(prompt) && !isTokens(prompt) ? prompt : [prompt];
  const count = prompts.length * Number(body["n"] ?? 1);
  const headOf = (index: number): string =>
    echo === true && typeof prompts[index % prompts.length] === "string"
      ? String(prompts[index % prompts.length])
      : "";
  const said = body["max_tokens"] === 0 ? [] : text;
  const usage = usageOf(body["max_tokens"] === 0 ? 0 : count, prompts.length);
  const answer = (choices: unknown[], members: Fields = {}): Fields => ({
    id: "cmpl-upstream",
    object: "text_completion",
    created: 1_700_000_000,
    model: body["model"],
    system_fingerprint: "b10172",
    choices,
    ...members,
  });
  const indexes = Array.from({ length: count }, (_, index) => index);
  if (isStreamed !== true)
    return json(
      answer(
        indexes.map((index) => {
          const whole = headOf(index) + said.join("");
          return { text: whole, index, logprobs: logprobsOf(body, whole), finish_reason: "stop" };
        }),
        { usage },
      ),
    );
  const pieces = indexes.flatMap((index) => [
    ...[headOf(index), ...said]
      .filter((piece) => piece !== "")
      .map((piece) => ({
        text: piece,
        index,
        logprobs: logprobsOf(body, piece),
        finish_reason: null,
      })),
    { text: "", index, logprobs: null, finish_reason: "stop" },
  ]);
  const hasUsage = (Object(options) as { include_usage?: unknown }).include_usage === true;
  const chunks = [
    ...pieces.map((choice) => answer([choice])),
    ...(hasUsage ? [answer([], { usage })] : []),
  ];
  return stream([...chunks.map((chunk) => sse(chunk)), sse("[DONE]")]);
}
