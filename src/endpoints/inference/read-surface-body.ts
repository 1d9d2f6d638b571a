import type { LlmKeyCaller } from "../../account/keys/caller.ts";
import type { RateClass } from "../../account/limits/rate-tier.ts";
import { countRequest } from "../../http/count-request.ts";
import { parseJsonObject, readJsonText } from "../../http/read-body.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Dependencies } from "../dependencies.ts";
import { inferenceBodyBytesMax } from "./read-call.ts";

/** A body that was read and counted. */
export interface SurfaceBody {
  text: string;
  body: Record<string, unknown>;
  caller: LlmKeyCaller;
}

/** Reads a body and counts its request in the class that it falls into. Throws `GatewayError`. */
export async function readSurfaceBody(
  context: RequestContext,
  {
    counters,
    rateClassOf,
  }: Pick<Dependencies, "counters"> & { rateClassOf(body: Record<string, unknown>): RateClass },
): Promise<SurfaceBody> {
  const text = await readJsonText(context.request, inferenceBodyBytesMax);
  const body = parseJsonObject(text);
  const caller = context.caller as LlmKeyCaller;
  const counting = countRequest(counters, {
    caller,
    rateClass: rateClassOf(body),
    headers: context.headers,
  });
  if (counting !== undefined) await counting;
  return { text, body, caller };
}
