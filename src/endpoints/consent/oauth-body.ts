import type { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { encodeOauthError } from "../../http/error-envelope.ts";
import { parseJsonObject, readBodyText } from "../../http/bodies/read-body.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { badField } from "../../platform/kernel/errors.ts";
import { accountBodyBytesMax, neverCached } from "../account/account-fields.ts";

/** The `grant_type` of the device flow (RFC 8628, section 3.4). */
export const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

/** What every route of OAuth declares: answers are never cached (RFC 6749, section 5.1). */
export const oauthRoute = {
  base: "api",
  access: { open: true },
  counting: "at-door",
  // Apps in a browser have no server that could send the request; no cookie is read here.
  anyOrigin: true,
  tag: "Key minting",
  encodeError: encodeOauthError,
} as const;

/** Parameters that may come several times (RFC 8707, section 2). */
const repeatable: ReadonlySet<string> = new Set(["resource"]);

/** Returns the fields of a form. Throws `bad_request` for a repeated one (RFC 6749, section 3.2). */
function formFields(text: string): Record<string, string> {
  const form = new URLSearchParams(text);
  const fields = new Map<string, string>();
  for (const [name, value] of form) {
    if (fields.has(name) && !repeatable.has(name)) throw badField(name, "is sent twice.");
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

/**
 * Reads a body that is a form or JSON. Fields that the schema does not name are ignored (RFC 6749,
 * section 3.2).
 */
export async function readOauthBody<Body>(
  context: RequestContext<unknown>,
  schema: z.ZodType<Body>,
): Promise<Body> {
  Object.assign(context.headers, neverCached, { pragma: "no-cache" });
  const text = await readBodyText(context.request, accountBodyBytesMax);
  const type = (context.request.headers.get("content-type") ?? "").toLowerCase();
  const isForm = type.startsWith("application/x-www-form-urlencoded");
  const body = text.trimStart();
  // A body without a type, or one that says only that it is text, is read by its first character.
  const isJson =
    !isForm && body !== "" && (body.startsWith("{") || type.startsWith("application/json"));
  return checkBody(schema, isJson ? parseJsonObject(text) : formFields(text));
}
