import type { Fields } from "../read-fields.ts";

/** What Cohere's `input_type` says of a search, as other vendors call its two sides; undefined for other purposes. */
export function searchSideOf(fields: Fields): "query" | "document" | undefined {
  switch (fields["input_type"]) {
    case "search_query":
      return "query";
    case "search_document":
      return "document";
    default:
      return undefined;
  }
}
