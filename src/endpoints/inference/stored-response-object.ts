import { z } from "zod";
import type { LlmKeyCaller } from "../../account/keys/caller.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { Reply } from "../../http/reply.ts";
import type { StoredResponse } from "../../inference/stored-responses/stored-response.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/** The record of a stored response, as far as the contract names its fields. */
export const storedResponseSchema = z
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
  .meta({ id: "StoredResponse" });

/** What an id that the caller's workspace does not have is answered with, whoever else may have it. */
export const responseNotFound = (id: string): GatewayError =>
  new GatewayError("not_found", `Response with id '${id}' not found.`);

/** Workspace of the caller; these endpoints take LLM keys only. */
export const workspaceOf = ({ caller }: RequestContext<undefined>): string =>
  (caller as LlmKeyCaller).workspace.id;

/** The response that a request names, if the caller's workspace has it. */
export async function requestedResponse(
  context: RequestContext<undefined>,
  { responses }: Dependencies,
): Promise<StoredResponse> {
  const id = context.param("id");
  const response = await responses.find(workspaceOf(context), id);
  if (response === undefined) throw responseNotFound(id);
  return response;
}

/** A JSON response out of text that is JSON already. */
export const jsonTextResponse = ({ headers }: RequestContext<undefined>, text: string): Reply =>
  new Reply(text, { headers: { "content-type": "application/json", ...headers } });
