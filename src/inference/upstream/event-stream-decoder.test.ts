import { describe, expect, test } from "bun:test";
import { EventStreamCodec } from "@smithy/eventstream-codec";
import { EventStreamDecoder, type ExceptionForm } from "./event-stream-decoder.ts";
import type { SseEvent } from "./sse-decoder.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** Messages as Amazon's own codec writes them (@smithy/eventstream-codec 4.5). */
const written = {
  start:
    "AAAAtgAAAEsbq7rFCzpldmVudC10eXBlBwAFY2h1bmsNOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcABWV2ZW50ey" +
    "JieXRlcyI6ImV5SjBlWEJsSWpvaWJXVnpjMkZuWlY5emRHRnlkQ0lzSW0xbGMzTmhaMlVpT25zaWFXUWlPaUp0YzJkZk1TSjlmUT09IiwicCI6ImFiY2QifVdz" +
    "2Xg=",
  text:
    "AAAA7gAAAEsTyD7PCzpldmVudC10eXBlBwAFY2h1bmsNOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcABWV2ZW50ey" +
    "JieXRlcyI6ImV5SjBlWEJsSWpvaVkyOXVkR1Z1ZEY5aWJHOWphMTlrWld4MFlTSXNJbWx1WkdWNElqb3dMQ0prWld4MFlTSTZleUowZVhCbElqb2lkR1Y0ZEY5" +
    "a1pXeDBZU0lzSW5SbGVIUWlPaUxGZ2NPelpNVzZJUENmaktRaWZYMD0iLCJwIjoiYWJjZCJ9G91new==",
  throttled:
    "AAAAkAAAAGGOkam3DzpleGNlcHRpb24tdHlwZQcAE3Rocm90dGxpbmdFeGNlcHRpb24NOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3" +
    "NhZ2UtdHlwZQcACWV4Y2VwdGlvbnsibWVzc2FnZSI6IlRvbyBtYW55IHJlcXVlc3RzIn3mf4AF",
  everyHeaderType:
    "AAAAlAAAAGubxOZpAWEAAWIBAWMCAQFkAwACAWUEAAAAAwFnBgACAQIBaAgAAAAAAAAAAAFpCRI0VngSNBI0EjQSNFZ4kBILOmV2ZW50LXR5cGUHAAttZX" +
    "NzYWdlU3RvcA06bWVzc2FnZS10eXBlBwAFZXZlbnR7InN0b3BSZWFzb24iOiJlbmRfdHVybiJ9nu5Nmg==",
  failed:
    "AAAAYgAAAFIDtcucDTptZXNzYWdlLXR5cGUHAAVlcnJvcgs6ZXJyb3ItY29kZQcAF0ludGVybmFsU2VydmVyRXhjZXB0aW9uDjplcnJvci1tZXNzYWdlBwAE" +
    "Ym9vbakkJ3Q=",
};

const bytesOf = (...names: (keyof typeof written)[]): Buffer =>
  Buffer.concat(names.map((name) => Buffer.from(written[name], "base64")));

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString(),
  (text) => Buffer.from(text),
);
const decoderOf = (form: ExceptionForm = "messages-error"): EventStreamDecoder =>
  new EventStreamDecoder(codec, form);

function eventsOf(...chunks: Uint8Array[]): SseEvent[] {
  const frames = decoderOf();
  return [...chunks.flatMap((chunk) => frames.push(chunk)), ...frames.end()];
}

const all = bytesOf("start", "text", "everyHeaderType", "throttled", "failed");
const expected: SseEvent[] = [
  { event: "message_start", data: '{"type":"message_start","message":{"id":"msg_1"}}' },
  {
    event: "content_block_delta",
    data: '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Łódź 🌤"}}',
  },
  { event: "messageStop", data: '{"stopReason":"end_turn"}' },
  {
    event: "error",
    data: '{"type":"error","error":{"type":"rate_limit_error","message":"Too many requests"}}',
  },
  { event: "error", data: '{"type":"error","error":{"type":"api_error","message":"boom"}}' },
];

test("decodes messages to their events, and exceptions to errors", () => {
  expect(eventsOf(all)).toEqual(expected);
});

test("decodes the same events for any split of the bytes", () => {
  const whole = JSON.stringify(expected);
  for (let cut = 0; cut <= all.length; cut += 1) {
    const events = JSON.stringify(eventsOf(all.subarray(0, cut), all.subarray(cut)));
    if (events !== whole) throw new Error(`cut at byte ${cut}: ${events}`);
  }
  expect(JSON.stringify(eventsOf(...[...all].map((byte) => Uint8Array.of(byte))))).toBe(whole);
});

test("does not keep a reference to a chunk", () => {
  const frames = decoderOf();
  const chunk = Buffer.from(bytesOf("start"));
  const half = chunk.subarray(0, 40);
  frames.push(half);
  half.fill(0);
  expect(frames.push(bytesOf("start").subarray(40))).toEqual(expected.slice(0, 1));
});

test("keeps the names of Converse exceptions", () => {
  expect(decoderOf("named").push(bytesOf("throttled", "failed"))).toEqual([
    { event: "exception:throttlingException", data: '{"message":"Too many requests"}' },
    { event: "exception:InternalServerException", data: '{"message":"boom"}' },
  ]);
});

test("ignores a truncated message", () => {
  expect(eventsOf(bytesOf("start", "text").subarray(0, -1))).toEqual(expected.slice(0, 1));
});

describe("a malformed event stream is an error:", () => {
  test("with any corrupted byte", () => {
    const message = bytesOf("start");
    for (let index = 0; index < message.length; index += 1) {
      const wrong = Buffer.from(message);
      wrong[index] = (wrong[index] ?? 0) ^ 0x10;
      expect(() => eventsOf(wrong)).toThrow(UpstreamFailure);
    }
  });

  test.each<[what: string, bytes: Uint8Array]>([
    ["an SSE stream", Buffer.from("event: message_start\ndata: {}\n\n")],
    ["an HTML page", Buffer.from("<html><body>Bad Gateway</body></html>")],
    ["headers longer than their message", prelude(20, 9)],
    ["a message above the maximum size", prelude(0x7fffffff, 0)],
  ])("%s", (_what, bytes) => {
    expect(() => eventsOf(bytes)).toThrow(expect.objectContaining({ fault: "malformed_response" }));
  });
});

/** The head of a message with a true checksum over these lengths. */
function prelude(totalBytes: number, headerBytes: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt32BE(totalBytes, 0);
  bytes.writeUInt32BE(headerBytes, 4);
  bytes.writeUInt32BE(Bun.hash.crc32(bytes.subarray(0, 8)), 8);
  return bytes;
}
