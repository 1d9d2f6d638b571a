import { FieldReader, isObject, listOf, type Fields } from "../read-fields.ts";

/** Contract: "Size and count bounds". */
const textsMax = 32;
const textLengthMax = 32_000;

/** A request to moderate texts (contract: `POST /moderations`). */
export interface ModerationRequest {
  /** The model as the caller wrote it; undefined means the default. */
  model: string | undefined;
  /** At least one. */
  texts: readonly string[];
}

/** Reads a body. Throws `invalid_request` that names the field. */
export function readModerationRequest(body: Fields): ModerationRequest {
  const fields = new FieldReader(body, "invalid_request");
  fields.checkSession();
  const model = fields.optionalText("model");
  return { model: model === "" ? undefined : model, texts: textsOf(body["input"], fields) };
}

function textsOf(input: unknown, fields: FieldReader): string[] {
  if (typeof input === "string") return [bounded(input, "input", fields)];
  const list = listOf(input);
  if (list === undefined)
    throw fields.refusal(
      "input",
      "is required: a string, an array of strings, or of {type: text, text} objects.",
    );
  if (list.length === 0) throw fields.refusal("input", "must have at least one text.");
  if (list.length > textsMax)
    throw fields.refusal("input", `may have at most ${textsMax} texts; these are ${list.length}.`);
  return list.map((entry, index) =>
    bounded(textOf(entry, `input[${index}]`, fields), `input[${index}]`, fields),
  );
}

function textOf(entry: unknown, param: string, fields: FieldReader): string {
  if (typeof entry === "string") return entry;
  if (isObject(entry) && entry["type"] === "text" && typeof entry["text"] === "string")
    return entry["text"];
  const isPicture = isObject(entry) && String(entry["type"]).startsWith("image");
  if (isPicture) throw fields.refusal(param, "is a picture; only texts can be moderated.");
  throw fields.refusal(param, "must be a string or an object of type text with a text.");
}

function bounded(text: string, param: string, fields: FieldReader): string {
  if (text.length <= textLengthMax) return text;
  // Characters beyond the first 65,536 count twice in `length`.
  const length = Array.from(text).length;
  if (length <= textLengthMax) return text;
  throw fields.refusal(param, `may have at most ${textLengthMax} characters; it has ${length}.`);
}
