import type { Annotation } from "../../canonical/content.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";

/** A citation of Responses: `url_citation`, or one that is kept as it is. */
export function decodeAnnotation(value: JsonValue): Annotation | undefined {
  const fields = asObject(value);
  if (fields === undefined) return undefined;
  const url = asString(fields.url);
  if (fields.type !== "url_citation" || url === undefined)
    return { type: "opaque", dialect: "openai-responses", value: fields };
  return withoutUndefined<Extract<Annotation, { type: "url" }>>({
    type: "url",
    url,
    title: asString(fields.title),
    startIndex: asNumber(fields.start_index),
    endIndex: asNumber(fields.end_index),
    citedText: asString(fields.content),
  });
}

/** The citations of one text; undefined when there are none. */
export function decodeAnnotations(value: unknown): Annotation[] | undefined {
  const annotations = (asArray(value) ?? []).flatMap((entry) => decodeAnnotation(entry) ?? []);
  return annotations.length === 0 ? undefined : annotations;
}

/** A citation for a Responses client; none for kinds that Responses has no word for. */
export function encodeAnnotation(annotation: Annotation): JsonObject[] {
  if (annotation.type === "opaque")
    return annotation.dialect === "openai-responses" ? [annotation.value] : [];
  if (annotation.type !== "url") return [];
  const { url, title, startIndex, endIndex, citedText } = annotation;
  return [
    withoutUndefined<JsonObject>({
      type: "url_citation",
      url,
      title,
      start_index: startIndex,
      end_index: endIndex,
      content: citedText,
    }),
  ];
}
