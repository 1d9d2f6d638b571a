import type {
  ClientOptions,
  ClientUnderTest,
  Question,
  Reply,
  Turn,
} from "../support/client-under-test.ts";
import { planSchema, weatherTool } from "../support/client-under-test.ts";
import { googleGenai, type GoogleAnswer, type GoogleContent } from "../support/google-genai.ts";
import { costOf } from "./cost-of.ts";
import { emptyReply } from "./empty-reply.ts";

const contentsOf = (turns: readonly Turn[]): GoogleContent[] =>
  turns.flatMap((turn): GoogleContent[] => {
    if (turn.role === "assistant") return turn.said.native as GoogleContent[];
    if (turn.role === "tools") {
      const parts = turn.results.map(({ id, name, text }) => ({
        functionResponse: { id, name, response: { output: text } },
      }));
      return [{ role: "user", parts }];
    }
    const { text, file } = turn;
    const inlineData = file && { mimeType: file.mediaType, data: file.data };
    return [{ role: "user", parts: [{ text }, ...(inlineData ? [{ inlineData }] : [])] }];
  });

const configOf = ({ tools, structured, reasoning, maxTokens }: Question): object => ({
  ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
  ...(reasoning ? { thinkingConfig: { includeThoughts: true } } : {}),
  ...(tools
    ? {
        tools: [
          {
            functionDeclarations: [
              {
                name: weatherTool.name,
                description: weatherTool.description,
                parametersJsonSchema: weatherTool.parameters,
              },
            ],
          },
        ],
      }
    : {}),
  ...(structured ? { responseMimeType: "application/json", responseJsonSchema: planSchema } : {}),
});

/** Returns a reply of the answers of a stream, or of the whole answer alone. */
function replyOf(answers: readonly GoogleAnswer[], question: Question): Reply {
  const contents = answers.flatMap(({ candidates }) => candidates?.[0]?.content ?? []);
  const parts = contents.flatMap((content) => content.parts ?? []);
  const textOf = (isThought: boolean): string =>
    parts.map((part) => ((part.thought === true) === isThought ? (part.text ?? "") : "")).join("");
  const calls = parts.flatMap(({ functionCall: call }) =>
    call === undefined
      ? []
      : [{ id: call.id ?? "", name: call.name ?? "", arguments: call.args ?? {} }],
  );
  const last = answers.at(-1);
  const usage = last?.usageMetadata;
  const reason = last?.candidates?.[0]?.finishReason;
  return {
    text: textOf(false),
    reasoning: textOf(true),
    calls,
    finish: calls.length > 0 ? "calls" : reason === "MAX_TOKENS" ? "length" : "stop",
    usage: {
      input: usage?.promptTokenCount ?? NaN,
      output: (usage?.candidatesTokenCount ?? NaN) + (usage?.thoughtsTokenCount ?? 0),
      cost: costOf(usage),
    },
    // A content for each chunk, as the package's own chats keep them.
    native: contents,
    ...(question.structured ? { parsed: JSON.parse(textOf(false)) as unknown } : {}),
  };
}

async function ask(folder: string, options: ClientOptions, question: Question): Promise<Reply> {
  const { models } = await googleGenai(folder, options);
  const leaving = new AbortController();
  const asked = {
    model: question.model,
    contents: contentsOf(question.turns),
    config: { ...configOf(question), abortSignal: leaving.signal },
  };
  if (!question.stream) return replyOf([await models.generateContent(asked)], question);
  const answers: GoogleAnswer[] = [];
  try {
    for await (const answer of await models.generateContentStream(asked)) {
      answers.push(answer);
      if (question.leaveAtText && answer.text) leaving.abort();
    }
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
  }
  return question.leaveAtText ? emptyReply : replyOf(answers, question);
}

/** The `@google/genai` package of a folder of the test clients; its versions differ in paths and framing. */
export const googleGenaiSdk = (folder: string, version: string): ClientUnderTest => ({
  name: `@google/genai ${version}`,
  connect: (options) => (question) => ask(folder, options, question),
  failureOf(error) {
    if (!(error instanceof Error)) throw error;
    const status: unknown = Reflect.get(error, "status");
    return {
      status: typeof status === "number" ? status : undefined,
      name: error.name,
      message: error.message,
    };
  },
  errorNames: {
    400: "ApiError",
    401: "ApiError",
    404: "ApiError",
    429: "ApiError",
    502: "ApiError",
  },
  cannot: {
    "ids of calls": "Google's own answers are kept, and older models give calls no ids",
    retries: "looks at the status only",
  },
});
