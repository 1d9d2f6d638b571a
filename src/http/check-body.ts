import type { ZodType } from "zod";
import { GatewayError } from "../platform/lib/errors.ts";

/** Path of a field as callers write it, such as `messages[2].content`. */
export const fieldPath = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, part) => (typeof part === "number" ? `${text}[${part}]` : text === "" ? String(part) : `${text}.${String(part)}`), "");

/** The value as the schema yields it; the first thing that is wrong is answered as 400 with the field's name. */
export function checkBody<Body>(schema: ZodType<Body>, value: unknown): Body {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const unknownField = issue?.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const param = issue === undefined ? "" : fieldPath([...issue.path, ...unknownField]);
  throw new GatewayError("bad_request", param === "" ? `The body is not valid: ${issue?.message}` : `${param}: ${issue?.message}`, {
    ...(param === "" ? {} : { param }),
  });
}
