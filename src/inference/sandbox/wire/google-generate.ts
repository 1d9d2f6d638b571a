import {
  failureMessage,
  InvalidRequestError,
  sseEvent,
  type Refusal,
  type RequestTarget,
  type SandboxDialect,
  type UnderstoodRequest,
  type SimulatedCall,
  type SimulatedChoice,
  type SimulatedReply,
} from "../dialect.ts";
import { z } from "zod";
import {
  effortFromBudget,
  effortFromName,
  type AnswerFormat,
  type Effort,
  type OfferedTool,
  type ReadPrompt,
  type ToolChoice,
  type Turn,
} from "../prompt.ts";

/** A chunk of a streamed answer; `content` is true when it carries a part. */
interface GenerateChunk {
  body: Record<string, unknown>;
  content: boolean;
}

/** A part with the output tokens and the reasoning tokens that it counts as. */
interface CountedPart {
  part: Record<string, unknown>;
  outputTokens: number;
  thoughtTokens: number;
}

interface Counts {
  outputTokens: number;
  thoughtTokens: number;
}

/** Returns the body of a whole generateContent answer. */
function generateWhole(reply: SimulatedReply, showThoughts: boolean): unknown {
  const candidates = reply.choices.map((choice, index) => ({
    content: { role: "model", parts: wholeParts(reply.seed, choice, showThoughts) },
    finishReason: finishReasonOf(choice),
    index,
  }));
  const { outputTokens = 0, reasoningTokens = 0 } = reply.usage ?? {};
  return { candidates, ...tail(reply, { outputTokens, thoughtTokens: reasoningTokens }) };
}

/** Yields the chunks of a streamed answer, one part each; usage is on every one and grows. */
function* generateChunks(reply: SimulatedReply, showThoughts: boolean): Generator<GenerateChunk> {
  const counts: Counts = { outputTokens: 0, thoughtTokens: 0 };
  const body = (candidate: Record<string, unknown>): Record<string, unknown> => ({
    candidates: [candidate],
    ...tail(reply, counts),
  });
  for (const [index, choice] of reply.choices.entries()) {
    if (!showThoughts)
      addTo(counts, {
        outputTokens: choice.reasoning.length,
        thoughtTokens: choice.reasoning.length,
      });
    for (const counted of streamedParts(reply.seed, choice, showThoughts)) {
      addTo(counts, counted);
      yield {
        body: body({ content: { role: "model", parts: [counted.part] }, index }),
        content: true,
      };
    }
    const last = {
      content: { role: "model", parts: [{ text: "" }] },
      finishReason: finishReasonOf(choice),
      index,
    };
    yield { body: body(last), content: false };
  }
}

function addTo(counts: Counts, more: Counts): void {
  counts.outputTokens += more.outputTokens;
  counts.thoughtTokens += more.thoughtTokens;
}

function wholeParts(
  seed: string,
  choice: SimulatedChoice,
  showThoughts: boolean,
): Record<string, unknown>[] {
  const thought =
    choice.reasoning.length > 0 && showThoughts
      ? [{ text: choice.reasoning.join(""), thought: true }]
      : [];
  const text = choice.text.length > 0 ? [{ text: choice.text.join("") }] : [];
  return [...thought, ...text, ...callParts(seed, choice).map((counted) => counted.part)];
}

function streamedParts(
  seed: string,
  choice: SimulatedChoice,
  showThoughts: boolean,
): CountedPart[] {
  const thoughts = showThoughts ? choice.reasoning : [];
  return [
    ...thoughts.map((text) => ({
      part: { text, thought: true },
      outputTokens: 1,
      thoughtTokens: 1,
    })),
    ...choice.text.map((text) => ({ part: { text }, outputTokens: 1, thoughtTokens: 0 })),
    ...callParts(seed, choice),
  ];
}

/**
 * Returns the calls. Each comes complete, the first with the signature of the reasoning; one that
 * was cut is left out.
 */
function callParts(seed: string, choice: SimulatedChoice): CountedPart[] {
  const signature =
    choice.reasoning.length > 0
      ? { thoughtSignature: Buffer.from(`sandbox thought ${seed}`).toString("base64") }
      : {};
  return choice.calls.flatMap((call, index) => {
    const args = parsedArguments(call);
    if (args === undefined) return [];
    const part = {
      functionCall: { id: call.id, name: call.name, args },
      ...(index === 0 ? signature : {}),
    };
    return [{ part, outputTokens: call.argumentTokens.length, thoughtTokens: 0 }];
  });
}

function parsedArguments(call: SimulatedCall): unknown {
  try {
    return JSON.parse(call.argumentTokens.join(""));
  } catch {
    return undefined;
  }
}

/** Returns the finish reason. Google reports STOP after function calls too. */
const finishReasonOf = (choice: SimulatedChoice): string =>
  choice.finish === "length" ? "MAX_TOKENS" : "STOP";

/** Returns usage and names; Google's `candidatesTokenCount` excludes reasoning. */
function tail(
  reply: SimulatedReply,
  { outputTokens, thoughtTokens }: Counts,
): Record<string, unknown> {
  const names = { modelVersion: reply.model, responseId: reply.seed };
  if (reply.usage === undefined) return names;
  const { inputTokens, cachedTokens } = reply.usage;
  return {
    usageMetadata: {
      promptTokenCount: inputTokens,
      ...(cachedTokens > 0 ? { cachedContentTokenCount: cachedTokens } : {}),
      candidatesTokenCount: outputTokens - thoughtTokens,
      ...(thoughtTokens > 0 ? { thoughtsTokenCount: thoughtTokens } : {}),
      totalTokenCount: inputTokens + outputTokens,
    },
    ...names,
  };
}

const part = z.looseObject({
  text: z.string().optional(),
  functionCall: z.looseObject({ name: z.string(), args: z.unknown().optional() }).optional(),
  functionResponse: z
    .looseObject({ name: z.string(), response: z.unknown().optional() })
    .optional(),
});

const contents = z.object({ role: z.string().nullish(), parts: z.array(part) });

const functionDeclaration = z.object({
  name: z.string(),
  parameters: z.unknown().optional(),
  parametersJsonSchema: z.unknown().optional(),
});

const generateBody = z.object({
  contents: z.array(contents).min(1),
  systemInstruction: z.object({ parts: z.array(part) }).nullish(),
  tools: z
    .array(z.object({ functionDeclarations: z.array(functionDeclaration).nullish() }))
    .nullish(),
  toolConfig: z
    .object({
      functionCallingConfig: z
        .object({
          mode: z.string().nullish(),
          allowedFunctionNames: z.array(z.string()).nullish(),
        })
        .nullish(),
    })
    .nullish(),
  generationConfig: z
    .object({
      maxOutputTokens: z.int().min(1).nullish(),
      stopSequences: z.array(z.string()).max(5).nullish(),
      candidateCount: z.int().min(1).max(8).nullish(),
      responseMimeType: z.string().nullish(),
      responseSchema: z.unknown().optional(),
      responseJsonSchema: z.unknown().optional(),
      thinkingConfig: z
        .object({
          includeThoughts: z.boolean().nullish(),
          thinkingBudget: z.int().nullish(),
          thinkingLevel: z.string().nullish(),
        })
        .nullish(),
    })
    .nullish(),
});

/** The fields of a generateContent request that the sandbox reads. */
type GenerateBody = z.infer<typeof generateBody>;

/** Checks the fields that the sandbox reads; the others may be anything. */
const parseGenerateBody = (body: unknown): GenerateBody => generateBody.parse(body);

/** Reads the prompt of a generateContent request, whose path names the model. */
function readGeneratePrompt(request: GenerateBody, model: string): ReadPrompt {
  const config = request.generationConfig;
  return {
    model,
    turns: [
      ...(request.systemInstruction ? [readTurn("system", request.systemInstruction.parts)] : []),
      ...request.contents.map((content) =>
        readTurn(content.role === "model" ? "assistant" : "user", content.parts),
      ),
    ],
    tools: (request.tools ?? []).flatMap((tool) => (tool.functionDeclarations ?? []).map(readTool)),
    toolChoice: readToolChoice(request),
    format: readFormat(config),
    maxTokens: config?.maxOutputTokens ?? undefined,
    stop: config?.stopSequences ?? [],
    choiceCount: config?.candidateCount ?? 1,
    effort: readEffort(config),
  };
}

function readTurn(
  role: "system" | "user" | "assistant",
  parts: readonly z.infer<typeof part>[],
): Turn {
  const texts = parts.map(
    (read) =>
      read.text ?? JSON.stringify(read.functionCall?.args ?? read.functionResponse?.response) ?? "",
  );
  const isToolResult = parts.some((read) => read.functionResponse !== undefined);
  return {
    role: isToolResult ? "tool" : role,
    text: texts.filter((text) => text !== "").join("\n"),
    mediaCount: parts.filter((read) => "inlineData" in read || "fileData" in read).length,
  };
}

const readTool = (read: z.infer<typeof functionDeclaration>): OfferedTool => ({
  name: read.name,
  kind: "function",
  schema: read.parametersJsonSchema ?? read.parameters,
});

function readToolChoice({ toolConfig }: GenerateBody): ToolChoice {
  const config = toolConfig?.functionCallingConfig;
  const [only] = config?.allowedFunctionNames ?? [];
  if (config?.mode === "NONE") return { mode: "none" };
  if (only !== undefined) return { mode: "named", name: only };
  return { mode: config?.mode === "ANY" ? "required" : "auto" };
}

function readFormat(config: GenerateBody["generationConfig"]): AnswerFormat {
  const schema = config?.responseJsonSchema ?? config?.responseSchema;
  if (schema !== undefined && schema !== null) return { kind: "schema", schema };
  return { kind: config?.responseMimeType === "application/json" ? "json" : "text" };
}

function readEffort(config: GenerateBody["generationConfig"]): Effort | undefined {
  const thinking = config?.thinkingConfig;
  if (!thinking) return undefined;
  if (thinking.thinkingLevel) return effortFromName(thinking.thinkingLevel.toLowerCase());
  const budget = thinking.thinkingBudget ?? -1;
  if (budget === 0) return undefined;
  return budget < 0 ? "medium" : effortFromBudget(budget);
}

const statusNames: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

const googleError = ({ status, message }: Refusal): Record<string, unknown> => ({
  error: {
    code: status,
    message,
    status: statusNames[status] ?? (status < 500 ? "INVALID_ARGUMENT" : "INTERNAL"),
  },
});

/** Google's `models/{model}:generateContent` and `:streamGenerateContent`. */
export const googleGenerate: SandboxDialect = {
  read(body: unknown, target: RequestTarget): UnderstoodRequest {
    const asked = verbOf(target);
    const request = parseGenerateBody(body);
    const showThoughts = request.generationConfig?.thinkingConfig?.includeThoughts ?? false;
    return {
      prompt: readGeneratePrompt(request, target.pathModel),
      stream: asked.streamed && asked.sse,
      // Without alt=sse, Google streams one JSON array of chunks; it is sent as a whole here.
      whole: (reply) =>
        asked.streamed
          ? [...generateChunks(reply, showThoughts)].map((chunk) => chunk.body)
          : generateWhole(reply, showThoughts),
      events: (reply) =>
        generateChunks(reply, showThoughts).map((chunk) => ({
          wire: sseEvent(chunk.body),
          content: chunk.content,
        })),
      failure: (reply) =>
        sseEvent(googleError({ status: 500, message: failureMessage, requestId: reply.seed })),
    };
  },
  refusal: googleError,
};

function verbOf({ pathAction, query }: RequestTarget): { streamed: boolean; sse: boolean } {
  if (pathAction !== "generateContent" && pathAction !== "streamGenerateContent") {
    throw new InvalidRequestError(`The sandbox has no method '${pathAction}'.`);
  }
  return { streamed: pathAction === "streamGenerateContent", sse: query.get("alt") === "sse" };
}
