import { z } from "zod";
import {
  type AnswerFormat,
  type Effort,
  effortFromBudget,
  effortFromName,
  type OfferedTool,
  type ReadPrompt,
  type ToolChoice,
  type Turn,
} from "../prompt.ts";

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
export type GenerateBody = z.infer<typeof generateBody>;

/** Checks the fields that the sandbox reads; the others may be anything. */
export const parseGenerateBody = (body: unknown): GenerateBody => generateBody.parse(body);

/** The prompt of a generateContent request; its model stands in the path. */
export function readGeneratePrompt(request: GenerateBody, model: string): ReadPrompt {
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
