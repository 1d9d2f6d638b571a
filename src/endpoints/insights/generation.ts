import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Answer } from "../../http/request-context.ts";
import type { GenerationRecord } from "../../insights/generation-record.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import type { Dependencies } from "../dependencies.ts";
import { generationObject, generationObjectSchema } from "./generation-object.ts";

async function answer(
  context: RequestContext<undefined, KnownCaller>,
  deps: Dependencies,
  id: string,
): Promise<Answer> {
  if (id === "")
    throw new GatewayError(
      "bad_request",
      "id: is required. Send the id of a response or its trace id.",
      { param: "id" },
    );
  const record = await generationOf(deps, { workspaceId: workspaceOf(context).id, id });
  if (record === undefined)
    throw new GatewayError("not_found", `There is no generation ${id} in this workspace.`);
  return context.json({ data: generationObject(record) });
}

/** Ids of responses, and the trace ids of the requests that made them. */
const responseDigits = /^(?:resp_)?([0-9a-f]{32})$/;

/**
 * The record of a request; of a background response that was begun again after a restart, that of
 * its last run.
 */
async function generationOf(
  { generations, responses }: Dependencies,
  { workspaceId, id }: { workspaceId: string; id: string },
): Promise<GenerationRecord | undefined> {
  const record = await generations.find(workspaceId, id);
  const digits = responseDigits.exec(id)?.[1];
  if (record !== undefined || digits === undefined) return record;
  const stored = await responses.find(workspaceId, `resp_${digits}`);
  if (stored === undefined || !stored.background) return undefined;
  const { [brand.metadataKey]: metadata } = JSON.parse(stored.recordText) as Record<
    string,
    { requestId?: unknown } | undefined
  >;
  return typeof metadata?.requestId === "string"
    ? generations.find(workspaceId, metadata.requestId)
    : undefined;
}

const shared = {
  method: "GET" as const,
  base: "api" as const,
  access: { llmKey: true as const },
  counting: "at-door" as const,
  tag: "Insights",
  response: z.object({ data: generationObjectSchema }),
  encodeError: encodeContractError,
};

/** Tokens, cost, latency and the explained charge of one request, by any form of its id. */
export const generationById = defineEndpoint({
  ...shared,
  path: "/generation/:id",
  summary: "Show what one request used and cost.",
  handle: (context, deps: Dependencies) => answer(context, deps, context.param("id")),
});

/** The same, with the id as a query parameter, as OpenRouter's clients send it. */
export const generationByQuery = defineEndpoint({
  ...shared,
  path: "/generation",
  summary: "Show what one request used and cost (id as query parameter).",
  query: z.object({ id: z.string() }),
  handle: (context, deps: Dependencies) => answer(context, deps, context.query.get("id") ?? ""),
});
