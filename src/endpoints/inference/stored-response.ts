import { z } from "zod";
import { checkBody } from "../../http/check-body.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { Reply } from "../../http/reply.ts";
import { eventStreamHeaders } from "../../http/event-stream-headers.ts";
import {
  metadataPlaceHeaders,
  wantsMetadataInLastEvent,
} from "../../inference/interpret/metadata-place.ts";
import {
  hasEnded,
  shownRecordText,
  type StoredResponse,
} from "../../inference/stored-responses/stored-response.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  jsonTextResponse,
  requestedResponse,
  responseNotFound,
  storedResponseSchema,
  workspaceOf,
} from "./stored-response-object.ts";
import { pickHeaders } from "./read-call.ts";
import { withoutMetadataEvent } from "./without-metadata-event.ts";
import { withPings } from "./with-pings.ts";
import { responseEventSchema } from "./stream-events.ts";

const shared = {
  base: "api" as const,
  access: { llmKey: true as const },
  counting: "at-door" as const,
  tag: "Inference",
  encodeError: encodeContractError,
};

const retrieveQuerySchema = z.object({
  stream: z.enum(["true", "false"], "must be true or false").optional(),
  starting_after: z
    .string()
    .regex(/^\d{1,15}$/, "must be a sequence number")
    .optional(),
  include: z
    .string()
    .optional()
    .describe(
      "Accepted for OpenAI's clients (also as include[]); a response is kept with everything that its request included.",
    ),
});

/** A stored response, or the events of a background one from a sequence number on. */
export const getStoredResponse = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/responses/:id",
  summary: "Retrieve a stored response.",
  description:
    "With `stream=true` the events of a background response, as they were sent: " +
    "those after `starting_after`, then those that come.",
  query: retrieveQuerySchema,
  otherResponseTypes: ["text/event-stream"],
  streamEvents: responseEventSchema,
  response: storedResponseSchema,
  async handle(context, deps) {
    const query = checkBody(retrieveQuerySchema, Object.fromEntries(context.query));
    const response = await requestedResponse(context, deps);
    if (query.stream !== "true") return jsonTextResponse(context, shownRecordText(response));
    return streamOf(response, { context, deps, startingAfter: Number(query.starting_after ?? -1) });
  },
});

function streamOf(
  { id, background, status }: StoredResponse,
  {
    context,
    deps,
    startingAfter,
  }: { context: RequestContext<undefined>; deps: Dependencies; startingAfter: number },
): Reply {
  if (!background) {
    throw new GatewayError(
      "bad_request",
      "stream: only responses created with background: true can be streamed again.",
      {
        param: "stream",
      },
    );
  }
  const followed = deps.background.follow(id, startingAfter);
  const dialectHeaders = pickHeaders(context.request.headers, metadataPlaceHeaders);
  const told = wantsMetadataInLastEvent({ dialectHeaders })
    ? withoutMetadataEvent(followed)
    : followed;
  const source = withPings(told, {
    keepAlive: deps.inference.keepAlive,
    atOnce: !hasEnded(status),
  });
  return new Reply(source, { headers: { ...eventStreamHeaders, ...context.headers } });
}

/** Stops a background response. One that has ended is answered as it is, so that cancelling twice is no error. */
export const cancelStoredResponse = defineEndpoint<Dependencies>({
  ...shared,
  method: "POST",
  path: "/responses/:id/cancel",
  summary: "Cancel a background response.",
  response: storedResponseSchema,
  async handle(context, deps) {
    const response = await requestedResponse(context, deps);
    if (!response.background) {
      throw new GatewayError(
        "bad_request",
        "Only responses created with background: true can be cancelled. Close the connection of others.",
      );
    }
    if (hasEnded(response.status)) return jsonTextResponse(context, response.recordText);
    await deps.background.cancel(response.id);
    return jsonTextResponse(context, shownRecordText(await requestedResponse(context, deps)));
  },
});

/** Deletes a stored response with its events; one that is under way is stopped first. */
export const deleteStoredResponse = defineEndpoint<Dependencies>({
  ...shared,
  method: "DELETE",
  path: "/responses/:id",
  summary: "Delete a stored response.",
  response: z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) }),
  async handle(context, deps) {
    const { id, status } = await requestedResponse(context, deps);
    if (!hasEnded(status)) await deps.background.cancel(id);
    if (!(await deps.responses.delete(workspaceOf(context), id))) throw responseNotFound(id);
    await deps.conversations.forgetResponse(workspaceOf(context), id);
    return context.json({ id, object: "response", deleted: true });
  },
});
