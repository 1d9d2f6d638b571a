import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import { asArray, asObject } from "../../shared/wire-fields.ts";

/**
 * The members of requests whose names have several words. Google's servers read each in this
 * spelling and in snake_case (Protocol Buffers, "JSON Mapping").
 */
const names = [
  "systemInstruction",
  "generationConfig",
  "safetySettings",
  "toolConfig",
  "cachedContent",
  "serviceTier",
  "inlineData",
  "fileData",
  "mimeType",
  "fileUri",
  "displayName",
  "functionCall",
  "functionResponse",
  "thoughtSignature",
  "executableCode",
  "codeExecutionResult",
  "videoMetadata",
  "mediaResolution",
  "willContinue",
  "functionDeclarations",
  "parametersJsonSchema",
  "responseJsonSchema",
  "googleSearch",
  "googleSearchRetrieval",
  "urlContext",
  "codeExecution",
  "googleMaps",
  "fileSearch",
  "computerUse",
  "functionCallingConfig",
  "allowedFunctionNames",
  "retrievalConfig",
  "includeServerSideToolInvocations",
  "stopSequences",
  "responseMimeType",
  "responseSchema",
  "responseModalities",
  "candidateCount",
  "maxOutputTokens",
  "topP",
  "topK",
  "presencePenalty",
  "frequencyPenalty",
  "responseLogprobs",
  "enableEnhancedCivicAnswers",
  "speechConfig",
  "thinkingConfig",
  "imageConfig",
  "includeThoughts",
  "thinkingBudget",
  "thinkingLevel",
  "generateContentRequest",
  "embedContentConfig",
  "taskType",
  "outputDimensionality",
  "autoTruncate",
] as const;

const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const bySnakeCase: ReadonlyMap<string, string> = new Map(
  names.map((name) => [snakeCase(name), name]),
);

/** Members whose value is the caller's own, in which no name is changed. */
const ownValues: ReadonlySet<string> = new Set([
  "args",
  "response",
  "parameters",
  "parametersJsonSchema",
  "responseSchema",
  "responseJsonSchema",
  "_responseJsonSchema",
  "labels",
  "provider",
  "trace",
]);

/** Matches a name in snake_case that may be one of Google's. */
const anySnakeCase = /"[a-z]+(?:_[a-z]+)+"\s*:/;

/**
 * Returns a body with Google's names in camelCase; the same body where it has no others.
 * A member in both spellings keeps the first.
 */
export function inCamelCase(body: JsonObject, text: string): JsonObject {
  return anySnakeCase.test(text) ? respelt(body) : body;
}

function respelt(object: JsonObject): JsonObject {
  const spelt: Record<string, JsonValue | undefined> = {};
  let isChanged = false;
  for (const key in object) {
    const name = bySnakeCase.get(key) ?? key;
    const value = object[key];
    const inner = ownValues.has(name) ? value : respeltValue(value);
    if (name !== key || inner !== value) isChanged = true;
    if (name === key || !(name in object)) spelt[name] = inner;
  }
  return isChanged ? spelt : object;
}

function respeltValue(value: JsonValue | undefined): JsonValue | undefined {
  const list = asArray(value);
  if (list !== undefined) {
    const inner = list.map((entry) => respeltValue(entry) ?? null);
    return inner.every((entry, index) => entry === list[index]) ? list : inner;
  }
  const object = asObject(value);
  return object === undefined ? value : respelt(object);
}
