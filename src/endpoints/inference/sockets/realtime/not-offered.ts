import { z } from "zod";
import { defineEndpoint } from "../../../../access/define-endpoint.ts";
import { lazily } from "../../../../http/endpoint.ts";
import { encodeContractError } from "../../../../http/error-envelope.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";

const shared = {
  base: "api" as const,
  access: { llmKey: true as const },
  counting: "at-door" as const,
  tag: "Inference",
  encodeError: encodeContractError,
  response: () => z.looseObject({}),
};

/** Refuses calls over WebRTC and SIP, whose sound would not pass through this gateway. */
export const createRealtimeCall = defineEndpoint<unknown>({
  ...shared,
  method: "POST",
  path: "/realtime/calls",
  summary: "Not offered: calls over WebRTC and SIP.",
  description: "Answers 501. Open a WebSocket at GET /realtime instead.",
  handle() {
    throw new GatewayError(
      "not_configured",
      "Calls over WebRTC and SIP are not offered, since their sound could not be metered. Open a WebSocket at /realtime.",
    );
  },
});

const refuseLive = (): never => {
  throw new GatewayError(
    "not_configured",
    "Live sessions are not offered, since what they cost could not be held before it is spent. Open a WebSocket at /realtime.",
  );
};

/** Refuses OpenAI's live sessions, which have events and a meter of their own. */
export const createLiveSession = defineEndpoint<unknown>({
  ...shared,
  method: "POST",
  path: "/live/*",
  summary: "Not offered: live sessions.",
  description: "Answers 501. Open a WebSocket at GET /realtime instead.",
  handle: refuseLive,
});

const eventSchema = lazily(() =>
  z.looseObject({ type: z.string().describe("Name of an event of OpenAI's Live API.") }),
);

/** Refuses sockets of live sessions. */
export const openLiveSession = defineEndpoint<unknown>({
  ...shared,
  method: "GET",
  path: "/live/*",
  socket: { client: eventSchema, server: eventSchema },
  summary: "Not offered: sockets of live sessions.",
  description: "Answers 501. Open a WebSocket at GET /realtime instead.",
  handle: refuseLive,
});
