import type { Fault } from "./fault.ts";
import {
  body,
  type BodyStep,
  cut,
  end,
  gzipStream,
  head,
  json,
  split,
  sse,
  stream,
} from "./steps.ts";
import { type UpstreamWire, wireEvents } from "./upstream-wire.ts";

/** A comment that keeps a quiet stream open. */
export const heartbeat = body(": keep-alive\n\n");

const rewritten = (event: BodyStep, rewrite: (text: string) => string): BodyStep =>
  body(rewrite(Buffer.from(event.bytes).toString("utf8")));

const withLineEnds = (event: BodyStep, lineEnd: string): BodyStep =>
  rewritten(event, (text) => text.replaceAll("\n", lineEnd));

/** Returns oddities after which the answer is still whole. */
export function harmlessOddities(wire: UpstreamWire) {
  const { opening, content, finish, terminator } = wire;
  const all = wireEvents(wire);
  const whole = JSON.stringify(wire.whole);
  return {
    "no fault": { request: "stream", effect: "harmless", script: stream(all) },
    "no fault, whole": { request: "whole", effect: "harmless", script: json(wire.whole) },
    "no terminator": {
      request: "stream",
      effect: "harmless",
      script: stream([...opening, ...content, ...finish]),
    },
    "no terminator, and a cut": {
      request: "stream",
      effect: "harmless",
      script: [head(), ...opening, ...content, ...finish, cut()],
    },
    "missing finish": {
      request: "stream",
      // Where nothing else ends a stream, one without a finish is a cut one.
      effect: terminator.length > 0 ? "harmless" : "after-content",
      script: stream([...opening, ...content, ...terminator]),
    },
    "heartbeats before content": {
      request: "stream",
      effect: "harmless",
      script: stream([heartbeat, heartbeat, ...all]),
    },
    "heartbeats between events": {
      request: "stream",
      effect: "harmless",
      script: stream(all.flatMap((event) => [event, heartbeat])),
    },
    "heartbeats after the finish": {
      request: "stream",
      effect: "harmless",
      script: stream([
        ...opening,
        ...content,
        ...finish,
        heartbeat,
        heartbeat,
        ...terminator,
        heartbeat,
      ]),
    },
    "malformed keep-alives": {
      request: "stream",
      effect: "harmless",
      script: stream([sse(": keepalive"), ...all.flatMap((event) => [event, sse("")])]),
    },
    "CRLF line ends": {
      request: "stream",
      effect: "harmless",
      script: stream(all.map((event) => withLineEnds(event, "\r\n"))),
    },
    "CR line ends": {
      request: "stream",
      effect: "harmless",
      script: stream(all.map((event) => withLineEnds(event, "\r"))),
    },
    "no space after data:": {
      request: "stream",
      effect: "harmless",
      script: stream(
        all.map((event) => rewritten(event, (text) => text.replaceAll("data: ", "data:"))),
      ),
    },
    "byte order mark": {
      request: "stream",
      effect: "harmless",
      script: stream([body("\uFEFF"), ...all]),
    },
    "no blank line at the end": {
      request: "stream",
      effect: "harmless",
      script: stream([
        ...all.slice(0, -1),
        body((all.at(-1)?.bytes ?? Buffer.of()).subarray(0, -2)),
      ]),
    },
    "one byte at a time": {
      request: "stream",
      effect: "harmless",
      script: [split("every-byte", stream(all))],
    },
    "one byte at a time, whole": {
      request: "whole",
      effect: "harmless",
      script: [split("every-byte", json(wire.whole))],
    },
    "everything in one write": {
      request: "stream",
      effect: "harmless",
      script: [split([], stream(all))],
    },
    "until-close framing": {
      request: "stream",
      effect: "harmless",
      script: stream(all, { framing: "until-close" }),
    },
    "until-close framing, whole": {
      request: "whole",
      effect: "harmless",
      script: [
        head({ headers: { "content-type": "application/json" }, framing: "until-close" }),
        body(whole),
        end(),
      ],
    },
    "chunked framing, whole": {
      request: "whole",
      effect: "harmless",
      script: [head({ headers: { "content-type": "application/json" } }), body(whole), end()],
    },
    "gzip stream": { request: "stream", effect: "harmless", script: gzipStream(all) },
    "gzip, whole": {
      request: "whole",
      effect: "harmless",
      script: json(wire.whole, { gzip: true }),
    },
    "SSE for a whole request": { request: "whole", effect: "harmless", script: stream(all) },
    "JSON for a stream request": {
      request: "stream",
      effect: "harmless",
      script: json(wire.whole),
    },
    "closes idle connections": {
      request: "whole",
      effect: "harmless",
      script: [...json(wire.whole), cut()],
    },
  } as const satisfies Record<string, Fault>;
}
