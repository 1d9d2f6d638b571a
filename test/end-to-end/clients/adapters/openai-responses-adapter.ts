import OpenAI from "openai";
import type { ClientUnderTest, Question, Reply, Turn } from "../support/client-under-test.ts";
import { planSchema, weatherTool } from "../support/client-under-test.ts";
import { costOf } from "./cost-of.ts";
import { emptyReply } from "./empty-reply.ts";
import { openaiErrorNames, openaiFailure } from "./openai-failure.ts";

type Item = OpenAI.Responses.ResponseInputItem;

/** A conversation as input items. */
const inputItems = (turns: readonly Turn[]): Item[] =>
  turns.flatMap((turn): Item[] => {
    if (turn.role === "assistant") return turn.said.native as Item[];
    if (turn.role === "tools")
      return turn.results.map(({ id, text }) => ({
        type: "function_call_output",
        call_id: id,
        output: text,
      }));
    const { text, file } = turn;
    if (file === undefined) return [{ role: "user", content: text }];
    const url = `data:${file.mediaType};base64,${file.data}`;
    const part =
      file.mediaType === "image/png"
        ? ({ type: "input_image", image_url: url, detail: "auto" } as const)
        : ({ type: "input_file", file_data: url, filename: file.name } as const);
    return [{ role: "user", content: [{ type: "input_text", text }, part] }];
  });

const requestOf = (question: Question): OpenAI.Responses.ResponseCreateParamsNonStreaming => ({
  model: question.model,
  input: inputItems(question.turns),
  ...(question.maxTokens === undefined ? {} : { max_output_tokens: question.maxTokens }),
  ...(question.reasoning
    ? {
        reasoning: { effort: "high", summary: "auto" },
        include: ["reasoning.encrypted_content"],
      }
    : {}),
  ...(question.tools ? { tools: [{ type: "function", strict: true, ...weatherTool }] } : {}),
  ...(question.structured
    ? { text: { format: { type: "json_schema", name: "plan", strict: true, schema: planSchema } } }
    : {}),
});

function replyOf(response: OpenAI.Responses.Response): Reply {
  const calls = response.output.flatMap((item) =>
    item.type === "function_call"
      ? [{ id: item.call_id, name: item.name, arguments: JSON.parse(item.arguments) }]
      : [],
  );
  const cut = response.incomplete_details?.reason === "max_output_tokens";
  return {
    text: response.output_text,
    reasoning: response.output
      .flatMap((item) => (item.type === "reasoning" ? item.summary : []))
      .map(({ text }) => text)
      .join(""),
    calls,
    finish: calls.length > 0 ? "calls" : cut ? "length" : "stop",
    usage: {
      input: response.usage?.input_tokens ?? NaN,
      output: response.usage?.output_tokens ?? NaN,
      cost: costOf(response.usage),
    },
    native: response.output,
    parsed: Reflect.get(response, "output_parsed"),
  };
}

async function ask({ responses }: OpenAI, question: Question): Promise<Reply> {
  const request = requestOf(question);
  if (!question.stream)
    return replyOf(
      await (question.structured ? responses.parse(request) : responses.create(request)),
    );
  const stream = responses.stream({ ...request, stream: true });
  if (!question.leaveAtText) return replyOf(await stream.finalResponse());
  stream.on("response.output_text.delta", () => stream.abort());
  await stream.done().catch((error: unknown) => {
    if (!(error instanceof OpenAI.APIUserAbortError)) throw error;
  });
  return emptyReply;
}

/** The `openai` package on Responses, with its strict stream helper. */
export const openaiResponses: ClientUnderTest = {
  name: "openai, responses",
  connect: ({ origin, apiKey, retries }) => {
    const openai = new OpenAI({ apiKey, baseURL: `${origin}/v1`, maxRetries: retries });
    return (question) => ask(openai, question);
  },
  failureOf: openaiFailure,
  errorNames: openaiErrorNames,
  cannot: {},
};
