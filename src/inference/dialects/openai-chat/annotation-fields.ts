import type { Annotation } from "../../canonical/content.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import { asNumber, asObject, asString } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";

/** A citation of chat: `url_citation`, or one that is kept as it is. */
export function decodeAnnotation(value: JsonValue): Annotation | undefined {
  const fields = asObject(value);
  const citation = asObject(fields?.url_citation);
  const url = asString(citation?.url);
  if (fields === undefined) return undefined;
  if (fields.type !== "url_citation" || url === undefined)
    return { type: "opaque", dialect: "openai-chat", value: fields };
  return withoutUndefined<Extract<Annotation, { type: "url" }>>({
    type: "url",
    url,
    title: asString(citation?.title),
    startIndex: asNumber(citation?.start_index),
    endIndex: asNumber(citation?.end_index),
    citedText: asString(citation?.content),
  });
}

/** A citation for a chat client; none for kinds that chat has no word for. */
export function encodeAnnotation(annotation: Annotation): JsonObject[] {
  if (annotation.type === "opaque")
    return annotation.dialect === "openai-chat" ? [annotation.value] : [];
  if (annotation.type !== "url") return [];
  const { url, title, startIndex, endIndex, citedText } = annotation;
  return [
    {
      type: "url_citation",
      url_citation: withoutUndefined<JsonObject>({
        url,
        title,
        start_index: startIndex,
        end_index: endIndex,
        content: citedText,
      }),
    },
  ];
}
