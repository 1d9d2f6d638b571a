import { GatewayError } from "../platform/lib/errors.ts";

const tooLarge = (limitBytes: number): GatewayError =>
  new GatewayError("content_too_large", `The body is larger than the limit of ${limitBytes} bytes. Send less, or split the request.`, {
    metadata: { limit_bytes: limitBytes },
  });

/**
 * The body as text, refused beyond `limitBytes` without reading on. Compressed bodies are refused:
 * nobody sends them to these APIs, and a small one can unfold into gigabytes.
 */
export async function readBodyText(request: Request, limitBytes: number): Promise<string> {
  const { headers } = request;
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    throw new GatewayError("bad_request", `The body is sent with content-encoding ${encoding}. Send it uncompressed.`);
  }
  const declared = headers.get("content-length");
  if (declared === null) return readUnsizedBody(request, limitBytes);
  if (Number(declared) > limitBytes) throw tooLarge(limitBytes);
  return request.text();
}

async function readUnsizedBody(request: Request, limitBytes: number): Promise<string> {
  if (request.body === null) return "";
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body) {
    size += chunk.byteLength;
    if (size > limitBytes) throw tooLarge(limitBytes);
    parts.push(chunk);
  }
  return Buffer.concat(parts).toString("utf8");
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
  return value as Record<string, unknown>;
}
