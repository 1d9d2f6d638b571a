import type { FieldWords } from "../../http/open-api-fields.ts";
import descriptions from "./field-descriptions.json" with { type: "json" };
import examples from "./field-examples.json" with { type: "json" };

/**
 * What the OpenAPI document says of fields whose schemas do not: what they mean wherever they are,
 * and a value for examples. Keys are the name of a field, or before it the name of the field,
 * record or path that it belongs to (`usage.cost`, `Budget.limit`,
 * `/oauth/revoke.token`); `*` is every field. A schema's own `describe` wins.
 */
export const fieldWords: FieldWords = { descriptions, examples };
