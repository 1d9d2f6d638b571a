import { openaiChatWire } from "./openai-chat-wire.ts";
import type { Fault } from "./fault.ts";
import { type FaultUpstream, refusingBaseUrl } from "./fault-upstream.ts";
import { harmlessOddities, heartbeat } from "./harmless-oddities.ts";
import {
  answer,
  body,
  type BodyStep,
  cut,
  end,
  head,
  json,
  raw,
  reset,
  sse,
  stall,
  stream,
} from "./steps.ts";
import { type UpstreamWire, wireEvents } from "./upstream-wire.ts";

const brokenJson = sse('{"id":"broken","choices":[{"index":0,"delta":');

const sseHeaders = { "content-type": "text/event-stream" };

/** Returns the faults of a stream after its head and before any content. */
const beforeContent = (wire: UpstreamWire) =>
  ({
    "cut after the head": { request: "stream", effect: "before-content", script: [head(), cut()] },
    "cut before content": {
      request: "stream",
      effect: "before-content",
      script: [head(), ...wire.opening, cut()],
    },
    "reset before content": {
      request: "stream",
      effect: "before-content",
      script: [head(), ...wire.opening, reset()],
    },
    "stall after the head": {
      request: "stream",
      effect: "before-content",
      waits: true,
      script: [head(), stall()],
    },
    "stall before content": {
      request: "stream",
      effect: "before-content",
      waits: true,
      script: [head(), ...wire.opening, stall()],
    },
    "heartbeats without end": {
      request: "stream",
      effect: "before-content",
      waits: true,
      script: [head(), heartbeat, heartbeat, stall()],
    },
    "empty stream": { request: "stream", effect: "before-content", script: stream([]) },
    "200 with no body": {
      request: "any",
      effect: "before-content",
      script: answer("", { headers: sseHeaders }),
    },
    "terminator only": {
      request: "stream",
      effect: "before-content",
      script: stream([sse("[DONE]")]),
    },
    "200, then an error first": {
      request: "stream",
      effect: "before-content",
      script: stream(wire.failure),
    },
    "200 with an error as JSON": {
      request: "any",
      effect: "before-content",
      script: json(wire.errorBody(500)),
    },
    "bad JSON first": {
      request: "stream",
      effect: "before-content",
      script: stream([brokenJson, ...wireEvents(wire)]),
    },
  }) as const satisfies Record<string, Fault>;

/** Returns the faults of a stream of which the client has received a part. */
function afterContent(wire: UpstreamWire) {
  const [first, second, third] = wire.content as readonly [BodyStep, BodyStep, BodyStep];
  const begun = [head(), ...wire.opening, first, second];
  const half = body(third.bytes.subarray(0, third.bytes.length / 2));
  return {
    "cut mid-stream": { request: "stream", effect: "after-content", script: [...begun, cut()] },
    "cut mid-event": {
      request: "stream",
      effect: "after-content",
      script: [...begun, half, cut()],
    },
    "reset mid-stream": { request: "stream", effect: "after-content", script: [...begun, reset()] },
    "stall mid-stream": {
      request: "stream",
      effect: "after-content",
      waits: true,
      script: [...begun, stall()],
    },
    "stall mid-event": {
      request: "stream",
      effect: "after-content",
      waits: true,
      script: [...begun, half, stall()],
    },
    "bad JSON mid-stream": {
      request: "stream",
      effect: "after-content",
      script: [...begun, brokenJson, third, ...wire.finish, ...wire.terminator, end()],
    },
    "error mid-stream": {
      request: "stream",
      effect: "after-content",
      script: [...begun, ...wire.failure, end()],
    },
    "error mid-stream, then the terminator": {
      request: "stream",
      effect: "after-content",
      script: [...begun, ...wire.failure, sse("[DONE]"), end()],
    },
    "end without finish": {
      request: "stream",
      effect: "after-content",
      script: [...begun, third, end()],
    },
    "until-close stream cut short": {
      request: "stream",
      effect: "after-content",
      script: [head({ framing: "until-close" }), ...wire.opening, first, second, cut()],
    },
    "bad chunk framing": {
      request: "stream",
      effect: "after-content",
      script: [...begun, raw("zz\r\n"), stall()],
    },
  } as const satisfies Record<string, Fault>;
}

/** Returns the faults that occur before or instead of the head, or in a whole answer. */
function wholeAnswer(wire: UpstreamWire) {
  const whole = JSON.stringify(wire.whole);
  const jsonHead = head({
    headers: { "content-type": "application/json" },
    framing: { contentLength: Buffer.byteLength(whole) },
  });
  const half = body(whole.slice(0, whole.length / 2));
  return {
    "connection refused": {
      request: "any",
      effect: "before-content",
      refusesConnections: true,
      script: [],
    },
    "never answers": { request: "any", effect: "before-content", waits: true, script: [] },
    "closes before answering": { request: "any", effect: "before-content", script: [cut()] },
    "resets before answering": { request: "any", effect: "before-content", script: [reset()] },
    "cut in the head": {
      request: "any",
      effect: "before-content",
      script: [raw("HTTP/1.1 200 OK\r\ncontent-"), cut()],
    },
    "no HTTP at all": {
      request: "any",
      effect: "before-content",
      script: [raw("SSH-2.0-fixture\r\n\r\n"), cut()],
    },
    "cut in the body": {
      request: "whole",
      effect: "before-content",
      script: [jsonHead, half, cut()],
    },
    "stall in the body": {
      request: "whole",
      effect: "before-content",
      waits: true,
      script: [jsonHead, half, stall()],
    },
    "bad JSON body": {
      request: "whole",
      effect: "before-content",
      script: answer(whole.slice(0, -1), { headers: jsonHead.headers }),
    },
  } as const satisfies Record<string, Fault>;
}

const htmlPage =
  "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>";

/** Returns the refusals by status. */
function refusals(wire: UpstreamWire) {
  const refusal = <Status extends number>(status: Status, headers: Record<string, string> = {}) =>
    ({
      request: "any",
      effect: "before-content",
      status,
      script: json(wire.errorBody(status), { status, headers }),
    }) as const;
  return {
    "400": refusal(400),
    "401": refusal(401),
    "402": refusal(402),
    "403": refusal(403),
    "404": refusal(404),
    "408": refusal(408),
    "429": refusal(429),
    "429 with retry-after": { ...refusal(429, { "retry-after": "7" }), retryAfterSeconds: 7 },
    "500": refusal(500),
    "503": refusal(503),
    "502 as HTML": {
      request: "any",
      effect: "before-content",
      status: 502,
      script: answer(htmlPage, { status: 502, headers: { "content-type": "text/html" } }),
    },
    "500 without a body": {
      request: "any",
      effect: "before-content",
      status: 500,
      script: answer("", { status: 500 }),
    },
  } as const satisfies Record<string, Fault>;
}

const table = (wire: UpstreamWire) => ({
  ...wholeAnswer(wire),
  ...refusals(wire),
  ...beforeContent(wire),
  ...afterContent(wire),
  ...harmlessOddities(wire),
});

export type FaultName = keyof ReturnType<typeof table>;

/**
 * Returns every named fault in a dialect. Its good answer says `fixtureText` and used `plainUsage`.
 */
export const faultsOf = (wire: UpstreamWire): Readonly<Record<FaultName, Fault>> => table(wire);

/** All named faults of a chat upstream. */
export const faults = faultsOf(openaiChatWire);

/** Makes an upstream behave like this fault, and returns the base URL that shows the fault. */
export function baseUrlUnder(fault: Fault, upstream: FaultUpstream): string {
  if (fault.refusesConnections) return refusingBaseUrl();
  upstream.script(fault.script);
  return upstream.baseUrl;
}
