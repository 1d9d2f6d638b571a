import type { Annotation } from "../../canonical/content.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { fieldsOfOwn, ownFields } from "./own-fields.ts";

type Unit = Extract<Annotation, { type: "document" }>["unit"];

/** The kinds that point into a document, with the names of their two bounds. */
const locations: ReadonlyMap<string, { unit: Unit; start: string; end: string }> = new Map([
  ["char_location", { unit: "character", start: "start_char_index", end: "end_char_index" }],
  ["page_location", { unit: "page", start: "start_page_number", end: "end_page_number" }],
  ["content_block_location", { unit: "block", start: "start_block_index", end: "end_block_index" }],
]);

const knownFields = new Set([
  "type",
  "cited_text",
  "document_index",
  "document_title",
  "url",
  "title",
  ...[...locations.values()].flatMap(({ start, end }) => [start, end]),
]);

/** Citations of a text block; undefined when it has none. */
export function decodeCitations(value: unknown): Annotation[] | undefined {
  const annotations = (asArray(value) ?? []).flatMap((entry) => decodeCitation(entry) ?? []);
  return annotations.length === 0 ? undefined : annotations;
}

/** One citation; kinds that only this dialect knows are kept as they are. */
export function decodeCitation(value: JsonValue): Annotation | undefined {
  const fields = asObject(value);
  if (fields === undefined) return undefined;
  const type = asString(fields.type) ?? "";
  const url = asString(fields.url);
  const shared = {
    citedText: asString(fields.cited_text),
    extensions: ownFields(fields, knownFields),
  };
  if (type === "web_search_result_location" && url !== undefined) {
    return withoutUndefined<Extract<Annotation, { type: "url" }>>({
      type: "url",
      url,
      title: asString(fields.title),
      ...shared,
    });
  }
  const location = locations.get(type);
  const documentIndex = asNumber(fields.document_index);
  const start = location && asNumber(fields[location.start]);
  const end = location && asNumber(fields[location.end]);
  if (
    location === undefined ||
    documentIndex === undefined ||
    start === undefined ||
    end === undefined
  ) {
    return { type: "opaque", dialect: "anthropic-messages", value: fields };
  }
  return withoutUndefined<Extract<Annotation, { type: "document" }>>({
    type: "document",
    documentIndex,
    title: asString(fields.document_title),
    unit: location.unit,
    start,
    end,
    ...shared,
  });
}

/** A citation for a client; none for kinds of other dialects. */
export function encodeCitation(annotation: Annotation): JsonObject[] {
  switch (annotation.type) {
    case "opaque":
      return annotation.dialect === "anthropic-messages" ? [annotation.value] : [];
    case "url":
      return [
        {
          type: "web_search_result_location",
          url: annotation.url,
          title: annotation.title ?? null,
          cited_text: annotation.citedText ?? "",
          encrypted_index: "",
          ...fieldsOfOwn(annotation.extensions),
        },
      ];
    case "document": {
      const { documentIndex, title, citedText, unit, start, end } = annotation;
      const found = [...locations].find(([, location]) => location.unit === unit);
      if (found === undefined) return [];
      const [type, names] = found;
      return [
        {
          type,
          cited_text: citedText ?? "",
          document_index: documentIndex,
          document_title: title ?? null,
          [names.start]: start,
          [names.end]: end,
          ...fieldsOfOwn(annotation.extensions),
        },
      ];
    }
  }
}

/**
 * A citation in a replayed turn. A web result has to come back with the index that its maker sealed;
 * one that another model wrote has none, and is left out.
 */
export const replayCitation = (annotation: Annotation): JsonObject[] =>
  encodeCitation(annotation).filter((citation) => citation.encrypted_index !== "");
