import type { Transform } from "node:stream";
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { systemClock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import {
  type JsonBounds,
  JsonScanner,
  type PassedBound,
  isDeeperThan,
} from "../../platform/kernel/json/json-scanner.ts";
import { withinTime } from "../../platform/kernel/time/within-time.ts";
import {
  bodyDeadlines,
  type BodyWait,
  bytesPerSecondMin,
  earnedMs,
  graceMs,
  savedMsMax,
} from "./body-deadlines.ts";
import type { BodyMemoryShare } from "./body-memory.ts";
import type { HttpRequest, ServedRequest } from "../served-request.ts";
import { BodyPace } from "./body-pace.ts";

/**
 * Bounds on the content of a JSON body. Each is many times what any provider takes, and a body
 * within them is parsed and checked in the time that other requests can wait. Serialising JSON
 * fails at a nesting of some ten thousand levels.
 */
const jsonBounds: JsonBounds = {
  levels: 1_000,
  members: 50_000,
  entries: 50_000,
  numbers: 400_000,
};

/** Bytes up to which bodies are not scanned, since parsing them takes negligible time. */
const smallBytesMax = 128 * 1024;

/**
 * Declared bytes up to which bodies are read in one piece, which takes half the time. Larger ones
 * are read as they arrive, so that they hold memory only for the bytes that came, and are refused
 * before the rest is sent.
 */
const wholeBytesMax = 2 * 1024 * 1024;

/**
 * Characters below which texts are not checked for nesting: even the deepest that fits is
 * serialised in negligible time.
 */
const nestingCharactersMin = 16_384;

/**
 * Pieces below this size come from a client that sends many small ones. More of the body is then
 * awaited, so that several pieces are read at once.
 */
export const smallPieceBytes = 16 * 1024;

/** Bytes that are scanned before other requests get their turn. */
const sliceBytes = 256 * 1024;

/**
 * The most bytes of a refused body that are read and dropped before its answer is sent. A
 * connection that is closed with unread bytes is reset, and its client may lose the answer (RFC
 * 9112, 9.6).
 */
const drainBytesMax = 64 * 1024 * 1024;
export const drainMs = 5_000;
const drainIdleMs = 500;

/** Options of reading a body. */
interface Reading {
  limitBytes: number;
  /** Whether the body is JSON, whose content is bounded while it is read. */
  json?: boolean;
}

type RequestOfBody = HttpRequest & Partial<Pick<ServedRequest, "memory" | "closes">>;

/** Builds the refusal of a body of more bytes than the limit. */
export const tooLarge = (limitBytes: number): GatewayError =>
  new GatewayError(
    "content_too_large",
    `The body is larger than the limit of ${limitBytes} bytes. Send less, or split the request.`,
    {
      metadata: { limit_bytes: limitBytes },
    },
  );

const tooSlow = (): GatewayError => {
  const message =
    "The body did not come in time: " +
    `a request has ${graceMs / 1000} seconds, and one more for every ${bytesPerSecondMin} bytes that came; ` +
    `it may pause for ${savedMsMax / 1000} at most.`;
  return new GatewayError("request_timeout", message, { fault: "client", retry: true });
};

const tooDeep = (): GatewayError =>
  new GatewayError(
    "bad_request",
    `The body's JSON is nested more than ${jsonBounds.levels} levels deep. Send it flatter.`,
  );

const tooMuch = (bound: PassedBound, what: string): GatewayError =>
  new GatewayError("content_too_large", `${what}. Send fewer, or split the request.`, {
    metadata: { [`limit_${bound}`]: jsonBounds[bound] },
  });

const errorOfBound: Readonly<Record<PassedBound, () => GatewayError>> = {
  levels: tooDeep,
  members: () =>
    tooMuch("members", `The objects in the body have more than ${jsonBounds.members} members`),
  entries: () =>
    tooMuch("entries", `The lists in the body have more than ${jsonBounds.entries} entries`),
  numbers: () =>
    tooMuch("numbers", `The lists in the body have more than ${jsonBounds.numbers} numbers`),
};

function assertWithinBounds(passed: PassedBound | undefined): void {
  if (passed !== undefined) throw errorOfBound[passed]();
}

const decoder = new TextDecoder();

/**
 * Reads the body as text. Beyond `limitBytes` it is refused without reading on, or without
 * decompressing on.
 */
export function readBodyText(
  request: HttpRequest,
  limitBytes: number,
  { json = false } = {},
): Promise<string> {
  const declared = declaredLengthOf(request);
  const isSmall = declared !== undefined && declared <= Math.min(smallBytesMax, limitBytes);
  return isSmall && !request.headers.has("content-encoding")
    ? readWhole(request, declared, () => request.text())
    : readAnyText(request, limitBytes, { declared, json });
}

/** Reads a body of any length, which may be compressed. */
async function readAnyText(
  request: HttpRequest,
  limitBytes: number,
  { declared, json }: { declared: number | undefined; json: boolean },
): Promise<string> {
  if (declared !== undefined && declared > limitBytes) await refuseUnread(request, limitBytes);
  const whole = wholeLength(declared);
  if (whole !== undefined && decompressorOf(request) === undefined) {
    const text = await readWhole(request, whole, () => request.text());
    if (json && whole > smallBytesMax)
      assertWithinBounds(new JsonScanner(jsonBounds).pushText(text));
    return text;
  }
  return decoder.decode(await readBodyBytes(request, limitBytes, { json }));
}

/** Reads JSON text, under the same rules and `jsonBounds`. */
export const readJsonText = (request: HttpRequest, limitBytes: number): Promise<string> =>
  readBodyText(request, limitBytes, { json: true });

/** Reads the body as bytes, under the same rules. */
export async function readBodyBytes(
  request: HttpRequest,
  limitBytes: number,
  { json = false } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const decompressor = decompressorOf(request);
  const declared = declaredLengthOf(request);
  if (declared !== undefined && declared > limitBytes) await refuseUnread(request, limitBytes);
  const whole = wholeLength(declared);
  const reading = { limitBytes, json: json && decompressor === undefined };
  const bytes =
    whole === undefined
      ? await readPieces(request, reading)
      : new Uint8Array(await readWhole(request, whole, () => request.arrayBuffer()));
  if (reading.json && whole !== undefined && whole > smallBytesMax)
    assertWithinBounds(new JsonScanner(jsonBounds).push(bytes));
  if (decompressor === undefined) return bytes;
  const memory = memoryOf(request);
  try {
    return await decompressBody(bytes, { decompressor, limitBytes, json, memory });
  } catch (error) {
    memory?.release();
    throw error;
  }
}

const memoryOf = (request: RequestOfBody): ServedRequest["memory"] | undefined => request.memory;

/** Marks the rest of the body as unread, so that the connection has to be closed. */
export function leaveUnread(request: RequestOfBody): void {
  if (request.closes !== undefined) request.closes = true;
}

/** Returns the length that the request declares. */
export function declaredLengthOf({ headers }: Pick<HttpRequest, "headers">): number | undefined {
  const declared = headers.get("content-length");
  return declared === null ? undefined : Number(declared);
}

/** Returns the declared length, where it is small enough for the body to be read in one piece. */
const wholeLength = (declared: number | undefined): number | undefined =>
  declared !== undefined && declared <= wholeBytesMax ? declared : undefined;

/** Refuses a body that is declared as larger than the limit. */
export function refuseUnread(request: HttpRequest, limitBytes: number): Promise<never> {
  leaveUnread(request);
  return refuseAfterDrain(request, tooLarge(limitBytes));
}

/**
 * Waits for a part of the body, and refuses the request where it does not arrive in time, the
 * client leaves, or `gives` has to give way to other bodies. Time in which the process stood still
 * does not count, since nothing could be read.
 */
export function inTime<Part>(
  request: HttpRequest,
  part: Promise<Part>,
  { dueMs, gives }: { dueMs: number; gives?: BodyMemoryShare | undefined },
): Promise<Part> {
  return new Promise((resolve, reject) => {
    const refuse = (error: GatewayError): void => {
      bodyDeadlines.forget(wait);
      awaited?.end();
      leaveUnread(request);
      reject(error);
    };
    const wait: BodyWait = { place: -1, dueMs, onLate: () => refuse(tooSlow()) };
    const awaited = gives?.awaitWhole(refuse);
    if (dueMs > systemClock.livedMs()) bodyDeadlines.watch(wait);
    else refuse(tooSlow());
    part.then(
      (came) => {
        bodyDeadlines.forget(wait);
        awaited?.end();
        resolve(came);
      },
      (error: unknown) => refuse(error instanceof GatewayError ? error : clientLeft(error)),
    );
  });
}

const clientLeft = (cause: unknown): GatewayError =>
  new GatewayError("client_closed_request", "The client left before its request was complete.", {
    cause,
  });

function readWhole<Body>(
  request: RequestOfBody,
  length: number,
  read: () => Promise<Body>,
): Promise<Body> {
  try {
    reserveMemory(request, length);
  } catch (error) {
    return refuseAfterDrain(request, error);
  }
  const dueMs = systemClock.livedMs() + graceMs + earnedMs(length);
  return inTime(request, read(), {
    dueMs,
    gives: length > smallBytesMax ? memoryOf(request) : undefined,
  });
}

/** Rejects with the error once what is in flight was read and dropped. */
async function refuseAfterDrain(request: HttpRequest, error: unknown): Promise<never> {
  const reader = request.body?.getReader();
  if (reader !== undefined) await drain(reader);
  throw error;
}

function reserveMemory(request: RequestOfBody, bytes: number): void {
  try {
    memoryOf(request)?.add(bytes);
  } catch (error) {
    leaveUnread(request);
    throw error;
  }
}

/** Reads a body that is large or of unknown length, as it arrives. */
async function readPieces(
  request: HttpRequest,
  { limitBytes, json }: Reading,
): Promise<Uint8Array<ArrayBuffer>> {
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const scanner = json ? new JsonScanner(jsonBounds) : undefined;
  const pieces: Uint8Array[] = [];
  const pace = new BodyPace(systemClock.livedMs());
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await inTime(request, reader.read(), pace);
      if (done) return Buffer.concat(pieces);
      size += value.byteLength;
      pace.came(value.byteLength, systemClock.livedMs());
      if (size > limitBytes) throw tooLarge(limitBytes);
      reserveMemory(request, value.byteLength);
      assertWithinBounds(scanner?.push(value));
      pieces.push(value);
      if (value.byteLength < smallPieceBytes) await nextTurn();
    }
  } catch (error) {
    leaveUnread(request);
    // Frees the memory for other requests at once.
    pieces.length = 0;
    memoryOf(request)?.release();
    const isRefused = error instanceof GatewayError && !unanswerable.has(error.code);
    await drain(reader, isRefused ? drainMs : 0);
    throw error;
  }
}

/** Errors of a body that does not arrive, or whose client has left. */
const unanswerable: ReadonlySet<string> = new Set(["request_timeout", "client_closed_request"]);

/** The common part of Bun's own type and the platform's. */
interface BodyReader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
  cancel(): Promise<void>;
}

/** Reads and drops what is in flight, within bounds of time and size, and ends the reading. */
export async function drain(reader: BodyReader, withinMs = drainMs): Promise<void> {
  const endMs = systemClock.monotonicMs() + withinMs;
  let bytesLeft = drainBytesMax;
  while (bytesLeft > 0) {
    const leftMs = Math.min(drainIdleMs, endMs - systemClock.monotonicMs());
    if (leftMs <= 0) break;
    const reading = reader.read().catch(() => undefined);
    const piece = await withinTime(leftMs, reading, undefined);
    if (piece?.value === undefined || piece.done) break;
    bytesLeft -= piece.value.byteLength;
  }
  // It rejects with the error that was thrown already.
  reader.cancel().catch(() => undefined);
}

/** Resolves once other requests have had their turn. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

const parseText = (
  text: string,
  { code, wanted }: { code: "bad_request" | "invalid_request_body"; wanted: string },
): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "not JSON";
    throw new GatewayError(code, `The body is not valid JSON (${reason}). Send ${wanted}.`, {
      cause: error,
    });
  }
};

/**
 * Parses JSON text. Throws `invalid_request_body` where it is malformed, and `bad_request` where it
 * is nested too deeply.
 */
export function parseJson(text: string): unknown {
  const value = parseText(text, { code: "invalid_request_body", wanted: "JSON" });
  if (text.length >= nestingCharactersMin && isDeeperThan(value, jsonBounds.levels))
    throw tooDeep();
  return value;
}

/** Parses JSON text of one object. Anything else is refused, with the position of the error. */
export function parseJsonObject(text: string): Record<string, unknown> {
  const value = parseText(text, { code: "bad_request", wanted: "one JSON object" });
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new GatewayError("bad_request", "The body must be one JSON object.");
  }
  if (text.length >= nestingCharactersMin && isDeeperThan(value, jsonBounds.levels))
    throw tooDeep();
  return value as Record<string, unknown>;
}

type Decompressor = (options: { chunkSize: number }) => Transform;

/**
 * The accepted content codings of a body (RFC 9110, 8.4.1; zstd is RFC 8878), decompressed off the
 * event loop.
 */
const decompressors: Readonly<Record<string, Decompressor>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/**
 * Returns how a request's body is decompressed; undefined where it is not compressed. Throws
 * `GatewayError` for an unknown coding.
 */
export function decompressorOf({
  headers,
}: Pick<HttpRequest, "headers">): Decompressor | undefined {
  const encoding = headers.get("content-encoding");
  if (encoding === null) return undefined;
  const coding = encoding.trim().toLowerCase();
  if (coding === "identity" || coding === "") return undefined;
  const decompressor = Object.hasOwn(decompressors, coding) ? decompressors[coding] : undefined;
  if (decompressor !== undefined) return decompressor;
  const message = `The body is sent with content-encoding ${encoding}. Send it as gzip, deflate, br or zstd, or uncompressed.`;
  throw new GatewayError("bad_request", message);
}

/**
 * Decompresses the body piece by piece: 30 KB may expand to hundreds of megabytes, and what is
 * refused must be refused before it takes memory. Throws `GatewayError` where the body is damaged,
 * or exceeds the limit, a bound of JSON or the memory for bodies.
 */
async function decompressBody(
  bytes: Uint8Array<ArrayBuffer>,
  {
    decompressor,
    limitBytes,
    json = false,
    memory,
  }: Reading & { decompressor: Decompressor; memory: ServedRequest["memory"] | undefined },
): Promise<Uint8Array<ArrayBuffer>> {
  const scanner = json ? new JsonScanner(jsonBounds) : undefined;
  const pieces: Uint8Array[] = [];
  let size = 0;
  const decompressed = decompressor({ chunkSize: sliceBytes });
  decompressed.end(bytes);
  try {
    for await (const piece of decompressed as AsyncIterable<Uint8Array>) {
      size += piece.byteLength;
      if (size > limitBytes) throw tooLarge(limitBytes);
      memory?.add(piece.byteLength);
      assertWithinBounds(scanner?.push(piece));
      pieces.push(piece);
    }
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    const message =
      "The body is not compressed as its content-encoding says. Send it whole, or uncompressed.";
    throw new GatewayError("bad_request", message, { cause: error });
  }
  return Buffer.concat(pieces);
}
