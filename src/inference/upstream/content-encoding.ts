import { createBrotliDecompress, createGunzip, createInflate, type Gunzip } from "node:zlib";
import type { Transform } from "node:stream";
import { UpstreamFailure } from "./upstream-failure.ts";
import type { UpstreamResponse } from "./exchange.ts";

/**
 * Bytes that are pulled: undefined at the end, a rejection when they were cut. What is here already
 * comes without a promise, since streams pull for each event.
 */
interface ByteSource {
  next(): Promise<Uint8Array | undefined> | Uint8Array | undefined;
  /** All of it as text (UTF-8). */
  readText(limitBytes: number): Promise<string>;
}

/**
 * Bounds on what an answer unfolds to: so many bytes in any case, and beyond them so many for each
 * byte that was sent. Repeated bytes unfold a thousandfold, streams of events some twentyfold.
 */
const decodedBytesFree = 8 * 1024 * 1024;
const decodedBytesPerByte = 100;

const decoders: Record<string, () => Transform | Gunzip> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/**
 * The decoded form of a body whose sender compressed it although identity was asked for (RFC 9110,
 * 8.4). Reads of the decoded form pull on the encoded one, so a bomb is bounded by its reader.
 */
function decodedBody(source: ByteSource, encoding: string): ByteSource {
  const create = decoders[encoding.trim().toLowerCase()];
  if (create === undefined) {
    throw new UpstreamFailure(
      "malformed_response",
      `content-encoding ${encoding} is not understood`,
      { sent: true },
    );
  }
  const iterator = encodedChunks(source, create())[Symbol.asyncIterator]();
  const next = async (): Promise<Uint8Array | undefined> => {
    const step = await iterator.next();
    return step.done ? undefined : step.value;
  };
  return { next, readText: (limitBytes) => collectText(next, limitBytes) };
}

async function* encodedChunks(source: ByteSource, decoder: Transform): AsyncGenerator<Uint8Array> {
  let encodedBytes = 0;
  let decodedBytes = 0;
  const feed = async (): Promise<void> => {
    for (let chunk = await source.next(); chunk !== undefined; chunk = await source.next()) {
      encodedBytes += chunk.byteLength;
      if (!decoder.write(chunk)) await new Promise((resolve) => decoder.once("drain", resolve));
    }
    decoder.end();
  };
  const feeding = feed().catch((error: unknown) =>
    decoder.destroy(error instanceof Error ? error : undefined),
  );
  try {
    for await (const chunk of decoder as AsyncIterable<Uint8Array>) {
      decodedBytes += chunk.byteLength;
      if (decodedBytes > Math.max(decodedBytesFree, decodedBytesPerByte * encodedBytes))
        throw unfoldsTooFar();
      yield chunk;
    }
    await feeding;
  } catch (error) {
    if (error instanceof UpstreamFailure) throw error;
    throw new UpstreamFailure("malformed_response", "the compressed answer could not be decoded", {
      sent: true,
      cause: error,
    });
  }
}

const unfoldsTooFar = (): UpstreamFailure =>
  new UpstreamFailure(
    "response_too_large",
    `the compressed answer unfolds to more than ${decodedBytesFree} bytes and ${decodedBytesPerByte} times its size`,
    { sent: true },
  );

async function collectText(
  next: () => Promise<Uint8Array | undefined>,
  limitBytes: number,
): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for (let chunk = await next(); chunk !== undefined; chunk = await next()) {
    size += chunk.byteLength;
    if (size > limitBytes) {
      throw new UpstreamFailure(
        "response_too_large",
        `the answer is larger than ${limitBytes} bytes`,
        { sent: true },
      );
    }
    parts.push(chunk);
  }
  return Buffer.concat(parts).toString("utf8");
}

/**
 * An answer without the coding of its body. An unknown coding ends the exchange and
 * rejects with an `UpstreamFailure`.
 */
export async function decodedResponse(
  response: UpstreamResponse,
  encoding: string,
): Promise<UpstreamResponse> {
  try {
    const body = decodedBody(response, encoding);
    return {
      status: response.status,
      headers: response.headers,
      next: () => body.next(),
      readText: (limitBytes) => body.readText(limitBytes),
      markContent: () => response.markContent(),
      expectEnd: () => response.expectEnd(),
      abort: () => response.abort(),
    };
  } catch (error) {
    response.abort();
    throw error;
  }
}
