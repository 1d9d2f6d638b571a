import { z } from "zod";
import type { LlmKeyCaller } from "../../account/keys/caller.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Answer } from "../../http/reply.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { generationObject } from "./generation-object.ts";

async function answer(context: RequestContext<undefined>, deps: Dependencies, id: string): Promise<Answer> {
  if (id === "") throw new GatewayError("bad_request", "id: is required. Send the id of a response or its trace id.", { param: "id" });
  const record = await deps.generations.find((context.caller as LlmKeyCaller).workspace.id, id);
  if (record === undefined) throw new GatewayError("not_found", `There is no generation ${id} in this workspace.`);
  return context.json({ data: generationObject(record) });
}

const shared = {
  method: "GET" as const,
  base: "api" as const,
  access: { llmKey: true as const },
  counting: "at-door" as const,
  tag: "Insights",
  response: z.object({ data: z.looseObject({ id: z.string(), total_cost: z.number(), output_cap: z.int().nullable() }) }),
  encodeError: encodeContractError,
};

/** Tokens, cost, latency and the explained charge of one request, by any form of its id. */
export const generationById = defineEndpoint<Dependencies>({
  ...shared,
  path: "/generation/:id",
  summary: "Show what one request used and cost.",
  handle: (context, deps) => answer(context, deps, context.param("id")),
});

/** The same, with the id as a query parameter, as OpenRouter's clients send it. */
export const generationByQuery = defineEndpoint<Dependencies>({
  ...shared,
  path: "/generation",
  summary: "Show what one request used and cost (id as query parameter).",
  query: z.object({ id: z.string() }),
  handle: (context, deps) => answer(context, deps, context.query.get("id") ?? ""),
});
