import type { ContentKind } from "../../canonical/request.ts";
import {
  addOutputs,
  isFilled,
  isSet,
  nestedField,
  numberField,
  type DeclaredParameter,
  type RequirementReader,
} from "../shared/requirements.ts";

type Body = Readonly<Record<string, unknown>>;

const configured = (body: Body, member: string): unknown =>
  nestedField(body, "generationConfig", member);

const thinkingField = (body: Body, member: string): unknown =>
  (Object(configured(body, "thinkingConfig")) as Body)[member];

/** Returns the requested form of the answer, in chat's words. */
function answerFormat(body: Body): unknown {
  const hasSchema = ["responseSchema", "responseJsonSchema", "_responseJsonSchema"].some((member) =>
    isSet(configured(body, member)),
  );
  if (hasSchema) return { type: "json_schema" };
  return configured(body, "responseMimeType") === "application/json"
    ? { type: "json_object" }
    : undefined;
}

/** The members of parameters that Google names differently from chat. */
const otherNames: Partial<Record<DeclaredParameter, (body: Body) => unknown>> = {
  tools: (body) => body["tools"],
  tool_choice: (body) => nestedField(body, "toolConfig", "functionCallingConfig"),
  response_format: answerFormat,
  temperature: (body) => configured(body, "temperature"),
  top_p: (body) => configured(body, "topP"),
  top_k: (body) => configured(body, "topK"),
  seed: (body) => configured(body, "seed"),
  stop: (body) => configured(body, "stopSequences"),
  frequency_penalty: (body) => configured(body, "frequencyPenalty"),
  presence_penalty: (body) => configured(body, "presencePenalty"),
  logprobs: (body) => configured(body, "responseLogprobs"),
  top_logprobs: (body) => configured(body, "logprobs"),
  reasoning_effort: (body) => thinkingField(body, "thinkingLevel"),
  reasoning: (body) => configured(body, "thinkingConfig"),
  max_tokens: (body) => configured(body, "maxOutputTokens"),
};

function thinks(body: Body): boolean | undefined {
  const config = configured(body, "thinkingConfig");
  if (!isSet(config)) return undefined;
  const budget = thinkingField(body, "thinkingBudget");
  if (budget === 0) return false;
  return isSet(budget) || isSet(thinkingField(body, "thinkingLevel"))
    ? true
    : thinkingField(body, "includeThoughts") === true || undefined;
}

/** The kinds of media types that models need an ability for. */
function kindOf(mediaType: unknown): ContentKind | undefined {
  const type = typeof mediaType === "string" ? mediaType.toLowerCase() : "";
  if (type.startsWith("image/")) return "vision";
  if (type.startsWith("audio/")) return "audio-input";
  return type === "application/pdf" ? "document-input" : undefined;
}

/** Returns the kinds of input and output beside text in the conversation. */
function kindsIn(body: Body): Set<ContentKind> {
  const kinds = new Set<ContentKind>();
  for (const content of listOf(body["contents"]))
    for (const part of listOf((Object(content) as Body)["parts"])) {
      const { inlineData, fileData } = Object(part) as Body;
      const { mimeType } = Object(inlineData ?? fileData) as Body;
      const kind = kindOf(mimeType);
      if (kind !== undefined) kinds.add(kind);
    }
  addOutputs(kinds, configured(body, "responseModalities"));
  return kinds;
}

const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : isSet(value) ? [value] : [];

/** Reads the requirements of Google's requests. Agents send large caps, which are lowered. */
export const requirements: RequirementReader = {
  outputCap: (body) => numberField(configured(body, "maxOutputTokens")),
  thinks,
  // Google counts reasoning within the cap.
  thoughtTokens: () => undefined,
  thoughtBudget: (body) => {
    const budget = numberField(thinkingField(body, "thinkingBudget"));
    return budget !== undefined && budget > 0 ? budget : undefined;
  },
  choices: (body) => numberField(configured(body, "candidateCount")) ?? 1,
  needsTools: (body) => isFilled(body["tools"]),
  answerFormat,
  parameter: (body, name) => otherNames[name]?.(body),
  kinds: kindsIn,
  effort: (body) => {
    if (thinkingField(body, "thinkingBudget") === 0) return "none";
    const level = thinkingField(body, "thinkingLevel");
    return typeof level === "string" ? level.toLowerCase() : undefined;
  },
};
