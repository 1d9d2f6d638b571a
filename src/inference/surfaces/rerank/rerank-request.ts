import {
  FieldReader,
  fieldsOf,
  isObject,
  listOf,
  requireFields,
  type Fields,
} from "../read-fields.ts";

/** Contract: "Size and count bounds". */
const documentsMax = 1_000;

/** A request to rank documents (contract: `POST /rerank`). */
export interface RerankRequest {
  /** The model as the caller wrote it. */
  model: string;
  query: string;
  /** At least one. */
  documents: readonly string[];
  /** How many results are wanted; undefined means all. */
  topN: number | undefined;
  returnDocuments: boolean;
  maxTokensPerDocument: number | undefined;
}

/** Reads a body. Throws `missing_required_fields`, or `invalid_request` that names the field. */
export function readRerankRequest(body: Fields): RerankRequest {
  requireFields(body, ["model", "query", "documents"]);
  const fields = new FieldReader(body, "invalid_request");
  fields.checkSession();
  return {
    model: fields.text("model"),
    query: fields.text("query"),
    documents: documentsOf(body["documents"], fields),
    topN: fields.positive("top_n"),
    returnDocuments: fields.flag("return_documents"),
    maxTokensPerDocument: fields.positive("max_tokens_per_doc"),
  };
}

function documentsOf(value: unknown, fields: FieldReader): string[] {
  const list = listOf(value);
  if (list === undefined)
    throw fields.refusal("documents", "must be an array of strings or {text} objects.");
  if (list.length === 0) throw fields.refusal("documents", "must have at least one entry.");
  if (list.length > documentsMax)
    throw fields.refusal(
      "documents",
      `may have at most ${documentsMax} entries; these are ${list.length}.`,
    );
  return list.map((entry, index) => {
    const text = isObject(entry) ? fieldsOf(entry)["text"] : entry;
    if (typeof text !== "string")
      throw fields.refusal(
        `documents[${index}]`,
        "must be a string or an object with a string text.",
      );
    return text;
  });
}
