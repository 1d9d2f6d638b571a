import { systemClock } from "../platform/lib/clock.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { isDeeperThan } from "../platform/lib/json-depth.ts";
import { JsonScanner, type JsonBounds, type PassedBound } from "../platform/lib/json-scanner.ts";
import type { HttpRequest, ServedRequest } from "./http-request.ts";
import { unfoldBody, unfoldingOf } from "./unfold-body.ts";

/**
 * What a JSON body may consist of: each bound is many times what any provider takes, and what is within them is parsed and checked
 * within the time that other requests may have to wait. Writing JSON fails where it is some ten thousand levels deep.
 */
export const jsonBounds: JsonBounds = {
  levels: 1_000,
  members: 50_000,
  entries: 50_000,
  numbers: 400_000,
};

/** Smaller bodies are read in one piece and not scanned: whatever they hold is parsed in no time. */
const smallBytesMax = 128 * 1024;

/** Shorter texts are not looked at: what they can be nested is written in no time. */
const nestingCharactersMin = 16_384;

/** How long a body may take: so many milliseconds, and as long as it takes at this rate. */
const graceMs = 10_000;
const bytesPerSecondMin = 32 * 1024;

/** Pieces that are smaller come from a client that sends many small ones: what is on its way is waited for, so that it comes at once. */
const smallPieceBytes = 16 * 1024;

/** Bytes that are scanned before other requests get their turn. */
const sliceBytes = 256 * 1024;

/** How a body is read. */
interface Reading {
  limitBytes: number;
  /** The body is JSON: what it consists of is bounded while it is read. */
  json?: boolean;
}

type RequestOfBody = HttpRequest & Partial<Pick<ServedRequest, "hold" | "closes">>;

const tooLarge = (limitBytes: number): GatewayError =>
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
    `a request has ${graceMs / 1000} seconds, and one more for every ${bytesPerSecondMin} bytes that came.`;
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

const decoder = new TextDecoder();

/** The body as text, refused beyond `limitBytes` without reading on, or without unfolding on where it is compressed. */
export async function readBodyText(
  request: HttpRequest,
  limitBytes: number,
  { json = false } = {},
): Promise<string> {
  const whole = wholeLengthOf(request, limitBytes);
  if (whole !== undefined && unfoldingOf(request) === undefined)
    return readWhole(request, whole, () => request.text());
  return decoder.decode(await readBodyBytes(request, limitBytes, { json }));
}

/** JSON text, under the same rules and `jsonBounds`. */
export const readJsonText = (request: HttpRequest, limitBytes: number): Promise<string> =>
  readBodyText(request, limitBytes, { json: true });

/** The body as bytes, under the same rules. */
export async function readBodyBytes(
  request: HttpRequest,
  limitBytes: number,
  { json = false } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const unfolding = unfoldingOf(request);
  const whole = wholeLengthOf(request, limitBytes);
  const reading = { limitBytes, json: json && unfolding === undefined };
  const bytes =
    whole === undefined
      ? await readPieces(request, reading)
      : new Uint8Array(await readWhole(request, whole, () => request.arrayBuffer()));
  if (unfolding === undefined) return bytes;
  const unfolded = await unfoldBody(bytes, { unfolding, limitBytes, tooLarge });
  holdOf(request)?.add(unfolded.byteLength);
  if (json && unfolded.byteLength > smallBytesMax) await scanSlices(unfolded);
  return unfolded;
}

const holdOf = (request: RequestOfBody): ServedRequest["hold"] | undefined => request.hold;

/** What comes of the body from here on is not read, so the connection cannot go on. */
function leaveUnread(request: RequestOfBody): void {
  if (request.closes !== undefined) request.closes = true;
}

/** The length that the request announces, where it is within the limit and small enough to be read in one piece. */
function wholeLengthOf(request: HttpRequest, limitBytes: number): number | undefined {
  const declared = request.headers.get("content-length");
  if (declared === null) return undefined;
  const length = Number(declared);
  if (length > limitBytes) {
    leaveUnread(request);
    throw tooLarge(limitBytes);
  }
  return length <= smallBytesMax ? length : undefined;
}

const deadlineMs = (bytes: number): number => graceMs + (bytes / bytesPerSecondMin) * 1000;

/** Waits for a part of the body, and refuses the request where it does not come in time or the client leaves. */
async function inTime<Part>(
  request: HttpRequest,
  part: Promise<Part>,
  withinMs: number,
): Promise<Part> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(tooSlow()), withinMs);
  try {
    return await Promise.race([part, late.promise]);
  } catch (error) {
    leaveUnread(request);
    throw error instanceof GatewayError
      ? error
      : new GatewayError(
          "client_closed_request",
          "The client left before its request was complete.",
          { cause: error },
        );
  } finally {
    clearTimeout(timer);
  }
}

function readWhole<Body>(
  request: RequestOfBody,
  length: number,
  read: () => Promise<Body>,
): Promise<Body> {
  holdRoom(request, length);
  return inTime(request, read(), deadlineMs(length));
}

function holdRoom(request: RequestOfBody, bytes: number): void {
  try {
    holdOf(request)?.add(bytes);
  } catch (error) {
    leaveUnread(request);
    throw error;
  }
}

/** Reads a body that is large, or whose length is not known, as it comes. */
async function readPieces(
  request: HttpRequest,
  { limitBytes, json }: Reading,
): Promise<Uint8Array<ArrayBuffer>> {
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const scanner = json ? new JsonScanner(jsonBounds) : undefined;
  const pieces: Uint8Array[] = [];
  const startedMs = systemClock.monotonicMs();
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await inTime(
        request,
        reader.read(),
        startedMs + deadlineMs(size) - systemClock.monotonicMs(),
      );
      if (done) return Buffer.concat(pieces);
      size += value.byteLength;
      if (size > limitBytes) throw tooLarge(limitBytes);
      holdRoom(request, value.byteLength);
      const passed = scanner?.push(value);
      if (passed !== undefined) throw errorOfBound[passed]();
      pieces.push(value);
      if (value.byteLength < smallPieceBytes) await nextTurn();
    }
  } catch (error) {
    leaveUnread(request);
    // It rejects with what has been thrown already.
    reader.cancel().catch(() => undefined);
    throw error;
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Scans bytes that are all there, with turns for other requests. */
async function scanSlices(bytes: Uint8Array): Promise<void> {
  const scanner = new JsonScanner(jsonBounds);
  for (let from = 0; from < bytes.byteLength; from += sliceBytes) {
    const passed = scanner.push(bytes.subarray(from, from + sliceBytes));
    if (passed !== undefined) throw errorOfBound[passed]();
    await nextTurn();
  }
}

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

/** The value of JSON text. Throws `invalid_request_body` where it is none, `bad_request` where it is nested too deep. */
export function parseJson(text: string): unknown {
  const value = parseText(text, { code: "invalid_request_body", wanted: "JSON" });
  if (text.length >= nestingCharactersMin && isDeeperThan(value, jsonBounds.levels))
    throw tooDeep();
  return value;
}

/** JSON text of one object; anything else is refused with the place where it went wrong. */
export function parseJsonObject(text: string): Record<string, unknown> {
  const value = parseText(text, { code: "bad_request", wanted: "one JSON object" });
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new GatewayError("bad_request", "The body must be one JSON object.");
  }
  if (text.length >= nestingCharactersMin && isDeeperThan(value, jsonBounds.levels))
    throw tooDeep();
  return value as Record<string, unknown>;
}
