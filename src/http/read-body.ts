import { GatewayError } from "../platform/lib/errors.ts";
import { isDeeperThan } from "../platform/lib/json-depth.ts";
import { unfoldBody, unfoldingOf } from "./unfold-body.ts";
import type { HttpRequest } from "./server/http-request.ts";

/** How deep a body may be nested. Writing JSON takes seconds where it is some ten thousand levels deep, and fails beyond. */
const nestingLevelsMax = 1_000;

/** Shorter texts are not looked at: what they can be nested is written in no time. */
const nestingCharactersMin = 16_384;

const tooLarge = (limitBytes: number): GatewayError =>
  new GatewayError("content_too_large", `The body is larger than the limit of ${limitBytes} bytes. Send less, or split the request.`, {
    metadata: { limit_bytes: limitBytes },
  });

const decoder = new TextDecoder();

/** The body as text, refused beyond `limitBytes` without reading on, or without unfolding on where it is compressed. */
export function readBodyText(request: HttpRequest, limitBytes: number): Promise<string> {
  try {
    if (unfoldingOf(request) === undefined && declaredLength(request, limitBytes) !== undefined) return request.text();
  } catch (error) {
    return Promise.reject(error);
  }
  return readBodyBytes(request, limitBytes).then((bytes) => decoder.decode(bytes));
}

/** The body as bytes, under the same rules. */
export async function readBodyBytes(request: HttpRequest, limitBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const unfolding = unfoldingOf(request);
  const declared = declaredLength(request, limitBytes);
  const bytes = declared === undefined ? await readUnsizedBody(request, limitBytes) : new Uint8Array(await request.arrayBuffer());
  return unfolding === undefined ? bytes : unfoldBody(bytes, { unfolding, limitBytes, tooLarge });
}

/** The length that the request announces, once it is within the limit; undefined when it announces none. */
function declaredLength({ headers }: HttpRequest, limitBytes: number): number | undefined {
  const declared = headers.get("content-length");
  if (declared === null) return undefined;
  if (Number(declared) > limitBytes) throw tooLarge(limitBytes);
  return Number(declared);
}

async function readUnsizedBody(request: HttpRequest, limitBytes: number): Promise<Buffer<ArrayBuffer>> {
  if (request.body === null) return Buffer.alloc(0);
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body) {
    size += chunk.byteLength;
    if (size > limitBytes) throw tooLarge(limitBytes);
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}

/** JSON text of one object; anything else is refused with the place where it went wrong. */
export function parseJsonObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "not JSON";
    throw new GatewayError("bad_request", `The body is not valid JSON (${reason}). Send one JSON object.`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new GatewayError("bad_request", "The body must be one JSON object.");
  }
  if (text.length >= nestingCharactersMin && isDeeperThan(value, nestingLevelsMax)) {
    throw new GatewayError("bad_request", `The body is nested more than ${nestingLevelsMax} levels deep. Send it flatter.`);
  }
  return value as Record<string, unknown>;
}
