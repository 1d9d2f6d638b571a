import { z } from "zod";
import { refuseFullWindow } from "../../../access/count-request.ts";
import { defineEndpoint } from "../../../access/define-endpoint.ts";
import { lazily } from "../../../http/endpoint.ts";
import { SocketUpgrade } from "../../../http/sockets/socket-upgrade.ts";
import { openaiResponses } from "../../../inference/dialects/openai-responses/index.ts";
import type { Dependencies } from "../../dependencies.ts";
import { responsesHeaders } from "../request-headers.ts";
import { responseEventSchema } from "../streams/stream-events.ts";
import { refuseForeignPages } from "./foreign-pages.ts";
import { ResponsesConnection } from "./responses-connection.ts";

const clientFrameSchema = lazily(() =>
  z.looseObject({
    type: z
      .enum(["response.create", "response.steer"])
      .describe("response.create has the fields of POST /responses beside these."),
    stream_id: z
      .string()
      .optional()
      .describe("Lane of the response, repeated in each of its events."),
    generate: z.boolean().optional().describe("false keeps the conversation and asks no model."),
    previous_response_id: z
      .string()
      .optional()
      .describe("Response to continue, or to steer while it is in progress."),
    input: z.unknown().optional().describe("Input of the response, or input that steers it."),
  }),
);

/**
 * Serves the Responses dialect over a WebSocket (OpenAI, "WebSocket mode"): one response for each
 * `response.create`, with every check of `POST /responses`.
 */
export const responsesSocket = defineEndpoint<
  Pick<Dependencies, "counters" | "socketLanes" | "clock" | "publicUrl">
>({
  method: "GET",
  path: "/responses",
  base: "api",
  socket: { client: clientFrameSchema, server: responseEventSchema },
  access: { llmKey: true },
  counting: "at-door",
  summary: "Open a WebSocket for responses.",
  description:
    "Each text frame `response.create` has the fields of POST /responses without `stream` and `background`, and is answered by the " +
    "events of its stream, one in each frame. Frames with the same `stream_id` are answered in order, others at the same time. " +
    "`previous_response_id` continues a response of the same socket even with `store: false`. Errors are frames " +
    "`{type: error, status, error}`. A socket lives for 60 minutes.",
  tag: "Inference",
  headers: responsesHeaders.extend({
    "OpenAI-Beta": z
      .string()
      .optional()
      .describe("Optional, such as responses_websockets=2026-02-06."),
  }),
  encodeError: openaiResponses.encodeError,
  handle(context, { counters, publicUrl, socketLanes, clock }) {
    refuseForeignPages(context, publicUrl());
    refuseFullWindow(counters, {
      caller: context.caller,
      rateClass: "paid",
      headers: context.answerHeaders,
    });
    const session = new ResponsesConnection({
      createRequest: context.request.framing(),
      serve: context.frameServer(),
      clock,
      lanesMax: socketLanes,
    });
    return new SocketUpgrade(session, { headers: context.headers });
  },
});
