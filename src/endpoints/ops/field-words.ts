import type { FieldWords } from "../../http/open-api/open-api-fields.ts";
import descriptions from "./field-descriptions.json" with { type: "json" };
import google from "./google-descriptions.json" with { type: "json" };
import requests from "./request-examples.json" with { type: "json" };
import examples from "./field-examples.json" with { type: "json" };

/**
 * Texts of the OpenAPI document for fields whose schemas have none: their meaning wherever they
 * occur, and a value for examples. Keys are the name of a field, optionally preceded by the name of
 * the field, record or path that contains it (`usage.cost`, `Budget.limit`, `/oauth/revoke.token`);
 * `*` is every field. A schema's own `describe` takes precedence. Bodies of requests are keyed by
 * method and path; names in capitals, such as `FILE_ID`, are the reader's to fill in.
 */
export const fieldWords: FieldWords = {
  descriptions: { ...descriptions, ...google },
  examples,
  requests,
};
