import type { Annotation } from "../../canonical/content.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";

type UrlAnnotation = Extract<Annotation, { type: "url" }>;

/**
 * Where a candidate's text comes from: grounding by search, and citations. Segments count UTF-8 bytes,
 * annotations characters. Sources that no segment names are told without a place.
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

/** The Gemini API calls them `citationSources`, Vertex AI `citations`. */
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

/** Byte offsets of a text as character offsets; what lies outside of it has none. */
function byteCounter(text: string): CharacterAt {
  const bytes = Buffer.from(text);
  return (byteOffset) =>
    byteOffset === undefined || byteOffset > bytes.length
      ? undefined
      : bytes.toString("utf8", 0, byteOffset).length;
}
