import type { Annotation } from "../../canonical/message.ts";
import type {
  Finish,
  FinishReason,
  LogProbabilities,
  TokenProbability,
  ReportedError,
} from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import { asArray, asNumber, asObject, asString, withoutUndefined } from "../shared/wire-fields.ts";

/**
 * Finish reasons of answers in which the model's own output was invalid, so that another attempt
 * may succeed.
 */
const failures = new Set([
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MALFORMED_RESPONSE",
  "MISSING_THOUGHT_SIGNATURE",
  "OTHER",
]);

/**
 * Explanations of what a model did wrong, where its finish reason alone would not tell a caller.
 */
const faults: Readonly<Record<string, string>> = {
  MALFORMED_FUNCTION_CALL: "The model wrote a tool call that cannot be read",
  UNEXPECTED_TOOL_CALL: "The model called a tool though none could be called",
  TOO_MANY_TOOL_CALLS: "The model called tools too many times in a row",
};

const filtered = new Set([
  "SAFETY",
  "RECITATION",
  "LANGUAGE",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "MODEL_ARMOR",
  "NO_IMAGE",
]);

/**
 * Returns the reported end of a candidate; undefined when the reason is missing or unknown. STOP is
 * reported after function calls too. Source: ai.google.dev/api/generate-content#FinishReason
 * (2026-11).
 */
export function decodeFinish(candidate: JsonObject): Finish | undefined {
  const word = asString(candidate.finishReason) ?? "";
  if (word === "STOP") return { reason: "stop" };
  if (word === "MAX_TOKENS") return { reason: "length" };
  if (!filtered.has(word) && !word.startsWith("IMAGE_")) return undefined;
  return filteredFinish(word, candidate.finishMessage);
}

/** Returns the same, with an end in a failure as one that needs no content before it. */
export function decodeAnyFinish(candidate: JsonObject): Finish | undefined {
  const word = asString(candidate.finishReason) ?? "";
  return failures.has(word)
    ? filteredFinish(word, candidate.finishMessage)
    : decodeFinish(candidate);
}

/** Returns the end of an answer whose prompt was refused; undefined when it was not. */
export function decodePromptBlock(feedback: JsonObject | undefined): Finish | undefined {
  const word = asString(feedback?.blockReason);
  return word === undefined ? undefined : filteredFinish(word, feedback?.blockReasonMessage);
}

function filteredFinish(category: string, message: unknown): Finish {
  const explanation = asString(message);
  return { reason: "content_filter", category, ...(explanation !== undefined && { explanation }) };
}

/** Returns the failure that a candidate ended in; undefined when it ended in none. */
export function readFailure(candidate: JsonObject): ReportedError | undefined {
  const word = asString(candidate.finishReason) ?? "";
  if (!failures.has(word)) return undefined;
  const explanation = asString(candidate.finishMessage);
  const message = `${faults[word] ?? "The model broke off its answer"} (${word})${explanation ? `: ${explanation}` : "."}`;
  return { message, code: word, type: "upstream_error", status: 502, generated: true };
}

type UrlAnnotation = Extract<Annotation, { type: "url" }>;

/**
 * Returns the sources of a candidate's text: grounding by search, and citations. Segments count
 * UTF-8 bytes, annotations characters. Sources that no segment names are returned without a
 * position.
 */
export function decodeGrounding(
  {
    groundingMetadata,
    citationMetadata,
  }: { groundingMetadata?: JsonObject; citationMetadata?: JsonObject },
  text: string,
): Annotation[] {
  if (groundingMetadata === undefined && citationMetadata === undefined) return [];
  const characterAt = byteCounter(text);
  return [
    ...groundingAnnotations(groundingMetadata, characterAt),
    ...citationAnnotations(citationMetadata, characterAt),
  ];
}

type CharacterAt = (byteOffset: number | undefined) => number | undefined;

function groundingAnnotations(
  metadata: JsonObject | undefined,
  characterAt: CharacterAt,
): Annotation[] {
  const sources = (asArray(metadata?.groundingChunks) ?? []).map(sourceOf);
  const named = new Set<number>();
  const supported = (asArray(metadata?.groundingSupports) ?? []).flatMap((value) => {
    const support = asObject(value);
    const segment = asObject(support?.segment);
    return (asArray(support?.groundingChunkIndices) ?? []).flatMap((index): Annotation[] => {
      const source = sources[Number(index)];
      if (source === undefined) return [];
      named.add(Number(index));
      return [
        withoutUndefined<UrlAnnotation>({
          ...source,
          startIndex: characterAt(asNumber(segment?.startIndex) ?? 0),
          endIndex: characterAt(asNumber(segment?.endIndex)),
          citedText: asString(segment?.text),
        }),
      ];
    });
  });
  return [
    ...supported,
    ...sources.filter(
      (source, index): source is UrlAnnotation => source !== undefined && !named.has(index),
    ),
  ];
}

function sourceOf(chunk: unknown): UrlAnnotation | undefined {
  const fields = asObject(chunk);
  const source =
    asObject(fields?.web) ?? asObject(fields?.retrievedContext) ?? asObject(fields?.maps);
  const url = asString(source?.uri);
  return url === undefined
    ? undefined
    : withoutUndefined<UrlAnnotation>({ type: "url", url, title: asString(source?.title) });
}

/** Returns citations. The Gemini API names them `citationSources`, Vertex AI `citations`. */
function citationAnnotations(
  metadata: JsonObject | undefined,
  characterAt: CharacterAt,
): Annotation[] {
  return (asArray(metadata?.citationSources) ?? asArray(metadata?.citations) ?? []).flatMap(
    (value): Annotation[] => {
      const fields = asObject(value);
      const url = asString(fields?.uri);
      if (fields === undefined || url === undefined) return [];
      return [
        withoutUndefined<UrlAnnotation>({
          type: "url",
          url,
          title: asString(fields.title),
          startIndex: characterAt(asNumber(fields.startIndex) ?? 0),
          endIndex: characterAt(asNumber(fields.endIndex)),
        }),
      ];
    },
  );
}

/**
 * Returns a function from byte offsets of a text to character offsets; offsets outside of it have
 * none.
 */
function byteCounter(text: string): CharacterAt {
  const bytes = Buffer.from(text);
  return (byteOffset) =>
    byteOffset === undefined || byteOffset > bytes.length
      ? undefined
      : bytes.toString("utf8", 0, byteOffset).length;
}

/**
 * Decodes `logprobsResult` of a candidate: the chosen tokens, each with its most likely
 * alternatives; undefined when there are none.
 */
export function decodeLogProbabilities(value: unknown): LogProbabilities | undefined {
  const fields = asObject(value);
  const chosen = asArray(fields?.chosenCandidates);
  if (chosen === undefined || chosen.length === 0) return undefined;
  const rivals = asArray(fields?.topCandidates) ?? [];
  const content = chosen.map((token, index) => ({
    ...decodeToken(token),
    top: (asArray(asObject(rivals[index])?.candidates) ?? []).map(decodeToken),
  }));
  return { content };
}

function decodeToken(value: JsonValue): TokenProbability {
  const fields = asObject(value);
  return { token: asString(fields?.token) ?? "", logprob: asNumber(fields?.logProbability) ?? 0 };
}

/** Google's words for how an answer ended. */
const reasons: Readonly<Record<FinishReason, string>> = {
  stop: "STOP",
  stop_sequence: "STOP",
  tool_calls: "STOP",
  pause: "STOP",
  length: "MAX_TOKENS",
  content_filter: "SAFETY",
  refusal: "SAFETY",
  error: "OTHER",
};

/** Encodes the end of a candidate, with the reason's own word where a provider gave Google's. */
export function encodeFinish({ reason, category, explanation }: Finish): JsonObject {
  const isOwn = category !== undefined && (filtered.has(category) || category.startsWith("IMAGE_"));
  return {
    finishReason: reason === "content_filter" && isOwn ? category : reasons[reason],
    ...(explanation !== undefined && { finishMessage: explanation }),
  };
}

/**
 * Encodes sources of a text as grounding by search; nothing where it has none. Google counts bytes
 * of UTF-8 where annotations count characters.
 */
export function encodeGrounding(annotations: readonly Annotation[], text: string): JsonObject {
  const cited = annotations.filter((one): one is UrlAnnotation => one.type === "url");
  if (cited.length === 0) return {};
  const urls = [...new Set(cited.map(({ url }) => url))];
  const bytesTo = (index: number): number => Buffer.byteLength(text.slice(0, index));
  return {
    groundingMetadata: {
      groundingChunks: urls.map((url) => {
        const title = cited.find((one) => one.url === url && one.title !== undefined)?.title;
        return { web: { uri: url, ...(title !== undefined && { title }) } };
      }),
      groundingSupports: cited.flatMap(({ url, startIndex, endIndex, citedText }) =>
        endIndex === undefined
          ? []
          : [
              {
                segment: {
                  startIndex: bytesTo(startIndex ?? 0),
                  endIndex: bytesTo(endIndex),
                  text: citedText ?? text.slice(startIndex ?? 0, endIndex),
                },
                groundingChunkIndices: [urls.indexOf(url)],
              },
            ],
      ),
    },
  };
}

/** Returns the mean of log probabilities, which Google's answers have beside them. */
export const meanLogProbability = ({ content = [] }: LogProbabilities): number | undefined =>
  content.length === 0
    ? undefined
    : content.reduce((sum, { logprob }) => sum + logprob, 0) / content.length;

/** Encodes log probabilities. */
export function encodeLogProbabilities({ content = [] }: LogProbabilities): JsonObject {
  const encode = ({ token, logprob }: TokenProbability) => ({ token, logProbability: logprob });
  return {
    chosenCandidates: content.map(encode),
    topCandidates: content.map(({ top }) => ({ candidates: top.map(encode) })),
  };
}
