import type { JsonObject } from "../canonical/json.ts";
import type { ReportedError } from "../canonical/reported-error.ts";
import { asArray, asNumber, asObject, asString } from "./request-fields.ts";
import { withoutUndefined } from "./without-undefined.ts";

/** Text of an upstream's that is worth passing on; the rest of a proxy's HTML page is not. */
const maxMessageLength = 2_000;

/**
 * What an error answer says, in any of the shapes that servers use: the vendors' envelopes, an `error`
 * that is text, vLLM's flat object, FastAPI's `detail`, an array around one of them, or no JSON at all.
 */
export function readErrorBody(status: number, body: unknown): ReportedError {
  if (typeof body === "string")
    return { message: textMessage(body) ?? `The provider answered with status ${status}.`, status };
  const outer = asObject(asArray(body)?.[0] ?? body) ?? {};
  const inner = asObject(outer.error) ?? outer;
  const code = inner.code ?? inner.status;
  return withoutUndefined<ReportedError>({
    message: (errorMessage(outer) ?? `The provider answered with status ${status}.`).slice(
      0,
      maxMessageLength,
    ),
    code: typeof code === "number" ? String(code) : asString(code),
    type: asString(inner.type),
    param: asString(inner.param),
    status: httpStatus(inner.code) ?? status,
    metadata: asObject(inner.metadata),
  });
}

/** The sentence of an error body; undefined when it has none. */
export function errorMessage(outer: JsonObject): string | undefined {
  const inner = asObject(outer.error);
  for (const value of [
    inner?.message,
    outer.error,
    outer.message,
    outer.detail,
    outer.title,
    inner?.code,
  ]) {
    const text = asString(value);
    if (text) return text;
  }
  const validation = (asArray(outer.detail) ?? [])
    .map((entry) => asString(asObject(entry)?.msg))
    .filter((text) => text);
  return validation.length === 0 ? undefined : validation.join("; ");
}

/** Some servers write the HTTP status as the error's code. */
function httpStatus(code: unknown): number | undefined {
  const number = asNumber(code);
  return number !== undefined && number >= 400 && number <= 599 ? number : undefined;
}

function textMessage(body: string): string | undefined {
  const text = body.trim();
  return text === "" || text.startsWith("<") ? undefined : text.slice(0, maxMessageLength);
}
