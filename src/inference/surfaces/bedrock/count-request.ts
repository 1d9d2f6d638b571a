import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import { asObject, asString, badRequest } from "../../dialects/shared/wire-fields.ts";
import { messagesOfConverse } from "./converse-request.ts";

/** The members of a request that are counted; Messages refuses others in a request to count. */
const counted = ["messages", "system", "tools", "tool_choice", "thinking"];

/** Returns the Messages request of either form of Bedrock's CountTokens. Throws `bad_request`. */
export function countedRequest(
  body: JsonObject,
  model: string,
): Record<string, JsonValue | undefined> {
  const { converse, invokeModel } = asObject(body.input) ?? {};
  const asked =
    converse === undefined
      ? invokedBody(asString(asObject(invokeModel)?.body))
      : messagesOfConverse(asObject(converse) ?? {}, { model, stream: false }).body;
  const kept = counted.filter((name) => asked[name] !== undefined);
  return { model, ...Object.fromEntries(kept.map((name) => [name, asked[name]])) };
}

function invokedBody(base64: string | undefined): Record<string, JsonValue | undefined> {
  try {
    const text = Buffer.from(base64 ?? "", "base64").toString("utf8");
    const body = asObject(JSON.parse(text) as JsonValue);
    if (body !== undefined) return body;
  } catch {
    // Refused below, as what is no object.
  }
  throw badRequest("input", "must have converse, or invokeModel.body with Messages as Base64.");
}
