import { z } from "zod";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import {
  type Fields,
  gatewayFieldNames,
  gatewayShape,
  open,
  requestCheck,
} from "../shared/request-check.ts";
import { badRequest } from "../shared/wire-fields.ts";

const part = z
  .looseObject({
    text: z.string().nullish(),
    thought: z.boolean().nullish(),
    thoughtSignature: z
      .string()
      .nullish()
      .describe("Seal of the reasoning before the part, as it was received."),
    inlineData: z.looseObject({ mimeType: z.string(), data: z.string() }).nullish(),
    fileData: z.looseObject({ mimeType: z.string().nullish(), fileUri: z.string() }).nullish(),
    functionCall: z
      .looseObject({ id: z.string().nullish(), name: z.string().min(1), args: open.nullish() })
      .nullish(),
    functionResponse: z
      .looseObject({
        id: z.string().nullish(),
        name: z.string().nullish(),
        response: open.nullish(),
      })
      .nullish(),
  })
  .describe("A part. Kinds that are not described reach Google's models only.");

const content = z.looseObject({
  role: z.string().nullish().describe("user or model; user if absent."),
  parts: z.union([z.array(part), part]).nullish(),
});

const functionDeclaration = z.looseObject({
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: open.nullish().describe("OpenAPI's subset, with types in upper case."),
  parametersJsonSchema: open.nullish().describe("JSON Schema of the arguments."),
});

const tool = z
  .looseObject({ functionDeclarations: z.array(functionDeclaration).nullish() })
  .describe("Functions of the caller, and tools that Google runs, which only its models have.");

const number = z.number().nullish();

const generationConfig = z.looseObject({
  temperature: z.number().min(0).max(2).nullish(),
  topP: number,
  topK: number,
  candidateCount: z.int().min(1).nullish(),
  maxOutputTokens: z.int().min(1).nullish(),
  stopSequences: z.array(z.string()).nullish(),
  presencePenalty: number,
  frequencyPenalty: number,
  seed: number,
  responseMimeType: z.string().nullish(),
  responseSchema: open.nullish(),
  responseJsonSchema: z.unknown().optional(),
  responseModalities: z.array(z.string()).nullish(),
  responseLogprobs: z.boolean().nullish(),
  logprobs: z.int().nullish(),
  thinkingConfig: z
    .looseObject({
      includeThoughts: z.boolean().nullish(),
      thinkingBudget: z.int().min(-1).nullish(),
      thinkingLevel: z.string().nullish(),
    })
    .nullish(),
});

const contentsProblem =
  'is required: send at least one such as {"role": "user", "parts": [{"text": "Hello"}]}.';

/**
 * The body of `:generateContent`: Google's reference (@google/genai 3.3, 2026-11), and the fields
 * for the gateway. Names in snake_case are accepted too. Fields that are not described reach
 * Google's models only.
 */
export const generateRequestSchema = z.looseObject({
  contents: z.union([z.array(content), content, z.string()], { error: contentsProblem }),
  systemInstruction: z.union([content, z.string()]).nullish(),
  tools: z.array(tool).nullish(),
  toolConfig: z
    .looseObject({
      functionCallingConfig: z
        .looseObject({
          mode: z.string().nullish(),
          allowedFunctionNames: z.array(z.string()).nullish(),
        })
        .nullish(),
    })
    .nullish(),
  safetySettings: z.array(open).nullish(),
  generationConfig: generationConfig.nullish(),
  cachedContent: z.string().nullish(),
  ...gatewayShape,
});

/** Checks a request; see `requestCheck`. */
export const checkGenerateRequest = requestCheck(generateRequestSchema, checkGenerate);

function checkGenerate({ contents, cachedContent }: Fields): void {
  if (Array.isArray(contents) && contents.length === 0)
    throw badRequest("contents", contentsProblem);
  if (typeof cachedContent !== "string" || cachedContent === "") return;
  // A name of Google's belongs to the account of the gateway's operator, not to the caller.
  const message = `There is no cached content ${cachedContent}. Send the whole conversation; providers cache what repeats.`;
  throw new GatewayError("not_found", message, { param: "cachedContent" });
}

/**
 * The members that are removed from every body that is sent upstream: those for the gateway, and
 * what the path says at Google.
 */
export const googleGatewayFields = [...gatewayFieldNames, "model", "stream"] as const;
