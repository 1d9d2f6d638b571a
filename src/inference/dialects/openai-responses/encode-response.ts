import type { JsonObject } from "../../canonical/json.ts";
import { responseParts } from "../../canonical/response-parts.ts";
import type { CanonicalResponse } from "../../canonical/response.ts";
import type { ResponseContext } from "../dialect.ts";
import { idBaseOf } from "./encode-stream.ts";
import { encodeFinish } from "./finish-fields.ts";
import { OutputBuilder } from "./output-builder.ts";
import { responseRecord } from "./response-record.ts";

/** A whole response for a client: what its stream would have added up to. */
export function encodeResponse(response: CanonicalResponse, context: ResponseContext = {}): JsonObject {
  const id = context.id ?? response.id;
  const builder = new OutputBuilder({
    idBase: () => idBaseOf(id),
    hidesReasoning: context.request?.reasoning?.exclude === true,
  });
  for (const part of responseParts(response)) {
    if (!("choiceIndex" in part) || part.choiceIndex !== 0) continue;
    if (part.type === "finish") builder.end(part.finish);
    else builder.add(part);
  }
  const ending = encodeFinish(builder.end());
  const now = context.nowSeconds?.();
  const { usage, gateway, serviceTier, extensions } = response;
  const record = responseRecord({
    id,
    model: context.model ?? response.model,
    createdAtSeconds: response.createdAtSeconds || (now ?? 0),
    ending: { ...ending, completedAtSeconds: now ?? response.createdAtSeconds },
    output: builder.output(ending.status === "completed" ? "completed" : "incomplete"),
    ...(usage !== undefined && { usage }),
    ...(serviceTier !== undefined && { serviceTier }),
    ...(gateway !== undefined && { gateway }),
  }, context);
  return extensions?.dialect === "openai-responses" ? { ...extensions.fields, ...record } : record;
}
