import { brotliDecompress, gunzip, inflate, zstdDecompress, type InputType } from "node:zlib";
import { promisify } from "node:util";
import { GatewayError } from "../platform/lib/errors.ts";
import type { HttpRequest } from "./http-request.ts";

type Unfolding = (
  bytes: InputType,
  options: { maxOutputLength: number },
) => Promise<Buffer<ArrayBuffer>>;

/** Content codings that a body may come in (RFC 9110, 8.4.1; zstd is RFC 8878), unfolded off the event loop. */
const unfoldings: Readonly<Record<string, Unfolding>> = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
};

/** How the body of a request has to be unfolded; undefined where it came as it is. Throws `GatewayError` for what nobody knows. */
export function unfoldingOf({ headers }: Pick<HttpRequest, "headers">): Unfolding | undefined {
  const encoding = headers.get("content-encoding");
  if (encoding === null) return undefined;
  const coding = encoding.trim().toLowerCase();
  if (coding === "identity" || coding === "") return undefined;
  const unfolding = Object.hasOwn(unfoldings, coding) ? unfoldings[coding] : undefined;
  if (unfolding !== undefined) return unfolding;
  const message = `The body is sent with content-encoding ${encoding}. Send it as gzip, deflate, br or zstd, or uncompressed.`;
  throw new GatewayError("bad_request", message);
}

/** The body as it was before it was compressed. Throws `GatewayError` where it is damaged, `tooLarge` as soon as it passes the limit. */
export async function unfoldBody(
  bytes: Uint8Array<ArrayBuffer>,
  {
    unfolding,
    limitBytes,
    tooLarge,
  }: { unfolding: Unfolding; limitBytes: number; tooLarge: (limitBytes: number) => GatewayError },
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await unfolding(bytes, { maxOutputLength: limitBytes });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE")
      throw tooLarge(limitBytes);
    const message =
      "The body is not compressed as its content-encoding says. Send it whole, or uncompressed.";
    throw new GatewayError("bad_request", message, { cause: error });
  }
}
