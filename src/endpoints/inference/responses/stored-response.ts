import { z } from "zod";
import { checkBody } from "../../../http/bodies/check-body.ts";
import { defineEndpoint, type RequestContext } from "../../../access/define-endpoint.ts";
import { lazily } from "../../../http/endpoint.ts";
import { encodeContractError } from "../../../http/error-envelope.ts";
import { eventStreamHeaders, Reply } from "../../../http/reply.ts";
import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import {
  metadataPlaceHeaders,
  wantsMetadataInLastEvent,
} from "../../../inference/dialects/shared/gateway-facts.ts";
import type { KeepAliveTicker } from "../../../inference/pipeline/stream/keep-alive-ticker.ts";
import { pageOfItems } from "../../../inference/responses/conversation.ts";
import {
  hasEnded,
  shownRecordText,
  type StoredResponse,
} from "../../../inference/responses/stored-response.ts";
import { brand } from "../../../platform/kernel/brand.ts";
import { badField, GatewayError } from "../../../platform/kernel/errors.ts";
import type { FrameSource } from "../../../platform/kernel/frame-source.ts";
import { wholeNumberField } from "../../account/account-fields.ts";
import type { Dependencies } from "../../dependencies.ts";
import { pickHeaders } from "../read-call.ts";
import { responseEventSchema } from "../streams/stream-events.ts";

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
      "Accepted for OpenAI's clients (also as include[]). A stored response always contains everything that its request included.",
    ),
});

/** The record of a stored response, as far as the contract names its fields. */
const storedResponseSchema = lazily(() =>
  z
    .looseObject({
      id: z.string(),
      object: z.literal("response"),
      created_at: z.int(),
      completed_at: z.int().nullable(),
      model: z.string(),
      status: z.enum(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]),
      output: z.array(z.looseObject({ type: z.string() })),
      usage: z
        .looseObject({
          input_tokens: z.int(),
          output_tokens: z.int(),
          total_tokens: z.int(),
          cost: z.number(),
        })
        .nullable(),
      error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
      incomplete_details: z.looseObject({ reason: z.string() }).nullable(),
    })
    .meta({ id: "StoredResponse" }),
);

/** Returns a stored response, or the events of a background one from a sequence number on. */
export const getStoredResponse = defineEndpoint<
  Pick<Dependencies, "inference" | "responses" | "background">
>({
  ...shared,
  method: "GET",
  path: "/responses/:id",
  summary: "Retrieve a stored response.",
  description:
    "With `stream=true`, returns the events of a background response as they were sent: first those after `starting_after`, then " +
    "new ones as they arrive.",
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
  }: {
    context: RequestContext<undefined>;
    deps: Pick<Dependencies, "inference" | "background">;
    startingAfter: number;
  },
): Reply {
  if (!background) {
    throw badField("stream", "only responses created with background: true can be streamed again.");
  }
  const followed = deps.background.follow(id, startingAfter);
  const dialectHeaders = pickHeaders(context.request.headers, metadataPlaceHeaders);
  const events = wantsMetadataInLastEvent({ dialectHeaders })
    ? withoutMetadataEvent(followed)
    : followed;
  const source = withPings(events, {
    keepAlive: deps.inference.keepAlive,
    atOnce: !hasEnded(status),
  });
  return new Reply(source, { headers: { ...eventStreamHeaders, ...context.headers } });
}

/**
 * Stops a background response. One that has ended is returned as it is, so that cancelling twice is
 * not an error.
 */
export const cancelStoredResponse = defineEndpoint<Pick<Dependencies, "responses" | "background">>({
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

/** Deletes a stored response with its events; one that is in progress is stopped first. */
export const deleteStoredResponse = defineEndpoint<
  Pick<Dependencies, "responses" | "background" | "conversations">
>({
  ...shared,
  method: "DELETE",
  path: "/responses/:id",
  summary: "Delete a stored response.",
  response: () =>
    z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) }),
  async handle(context, deps) {
    const { id, status } = await requestedResponse(context, deps);
    if (!hasEnded(status)) await deps.background.cancel(id);
    if (!(await deps.responses.delete(workspaceOf(context), id))) throw responseNotFound(id);
    await deps.conversations.forgetResponse(workspaceOf(context), id);
    return context.json({ id, object: "response", deleted: true });
  },
});

const itemsQuerySchema = z.object({
  order: z.enum(["asc", "desc"], "must be asc or desc").default("desc"),
  limit: wholeNumberField([1, 100], "must be a number from 1 to 100").default(20),
  after: z.string().optional(),
  include: z
    .string()
    .optional()
    .describe(
      "Accepted for OpenAI's clients (also as include[]). Items are always listed in full.",
    ),
});

/** Lists the input items of a stored response, page by page, without those of earlier responses. */
export const listInputItems = defineEndpoint<Pick<Dependencies, "responses">>({
  method: "GET",
  path: "/responses/:id/input_items",
  base: "api",
  access: { llmKey: true },
  counting: "at-door",
  summary: "List the input items of a stored response.",
  tag: "Inference",
  query: itemsQuerySchema,
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(z.looseObject({ id: z.string(), type: z.string() })),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
      has_more: z.boolean(),
    }),
  encodeError: encodeContractError,
  async handle(context, { responses }) {
    const { order, limit, after } = checkBody(itemsQuerySchema, Object.fromEntries(context.query));
    const id = context.param("id");
    const items = await responses.inputItems(workspaceOf(context), id);
    if (items === undefined) throw responseNotFound(id);
    return context.json(pageOfItems(items, { responseId: id, query: { order, limit, after } }));
  },
});

/**
 * Returns the error for an id that the caller's workspace does not have, even if another one has
 * it.
 */
const responseNotFound = (id: string): GatewayError =>
  new GatewayError("not_found", `Response with id '${id}' not found.`);

/** Returns the workspace of the caller; these endpoints accept LLM keys only. */
const workspaceOf = ({ caller }: RequestContext<undefined>): string =>
  (caller as LlmKeyCaller).workspace.id;

/** Returns the response that a request names, if the caller's workspace has it. */
async function requestedResponse(
  context: RequestContext<undefined>,
  { responses }: Pick<Dependencies, "responses">,
): Promise<StoredResponse> {
  const id = context.param("id");
  const response = await responses.find(workspaceOf(context), id);
  if (response === undefined) throw responseNotFound(id);
  return response;
}

/** Returns a JSON response from text that is JSON already. */
const jsonTextResponse = ({ headers }: RequestContext<undefined>, text: string): Reply =>
  new Reply(text, { headers: { "content-type": "application/json", ...headers } });

/** A comment, which every client ignores (WHATWG HTML, section 9.2.6). */
const pingFrame = ": ping\n";

/**
 * Returns the frames of a source, with pings while it is silent. With `atOnce` one ping precedes
 * them: the head of an answer is sent with its first byte, and the next event of a response may
 * take long.
 */
export function withPings(
  source: FrameSource,
  { keepAlive, atOnce }: { keepAlive: KeepAliveTicker; atOnce: boolean },
): FrameSource {
  const wait = keepAlive.newWait(pingFrame);
  let pulled: Promise<string | undefined> | undefined;
  let headDue = atOnce;
  /**
   * Passes frames on. Those that arrive while a ping is being sent stay in `pulled` for the next
   * wait.
   */
  const give = (frames: string | undefined): void => {
    if (frames === undefined) wait.end();
    if (!wait.isOpen) return;
    pulled = undefined;
    wait.give(frames);
  };
  return {
    next() {
      if (headDue) {
        headDue = false;
        return Promise.resolve(pingFrame);
      }
      return new Promise((resolve) => {
        wait.begin(resolve);
        pulled ??= source.next();
        void pulled.then(give);
      });
    },
    cancel() {
      wait.end();
      source.cancel();
    },
  };
}

const metadataFrame = `event: ${brand.metadataEvent}\n`;

/**
 * Returns the frames without the metadata event, for clients that fail on it; the record has the
 * same data.
 */
export const withoutMetadataEvent = (source: FrameSource): FrameSource => ({
  async next() {
    const frames = await source.next();
    if (frames === undefined || !frames.includes(metadataFrame)) return frames;
    return frames
      .split("\n\n")
      .filter((frame) => !frame.startsWith(metadataFrame))
      .join("\n\n");
  },
  cancel: () => source.cancel(),
});
