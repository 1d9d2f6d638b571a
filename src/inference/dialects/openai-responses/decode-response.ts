import { GatewayError } from "../../../platform/lib/errors.ts";
import { reconcileFinish } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantPart } from "../../canonical/message.ts";
import type { CanonicalResponse, Choice } from "../../canonical/response.ts";
import type { DecodeContext } from "../dialect.ts";
import { readOpenaiUsage } from "../read-openai-usage.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { decodeItem } from "./decode-output.ts";
import { decodeFinish } from "./finish-fields.ts";
import { decodeTokens } from "../openai-token-fields.ts";
import { readReportedError } from "./read-error.ts";

/** A response from an upstream; see `UpstreamDialect.decodeResponse`. Fields of wrong types count as absent. */
export function decodeResponse(body: unknown, context: DecodeContext = {}): CanonicalResponse {
  const fields = asObject(body);
  const output = asArray(fields?.output);
  const finish = fields && decodeFinish(fields);
  if (fields === undefined || output === undefined || finish === undefined)
    throw notAnAnswer(fields);
  const id = asString(fields.id) ?? "";
  const items = output.map((item) => asObject(item) ?? {});
  const parts = decodeItems(items, { id, context });
  return withoutUndefined<CanonicalResponse>({
    id,
    model: asString(fields.model) ?? "",
    createdAtSeconds: asNumber(fields.created_at) ?? 0,
    choices: [
      withoutUndefined<Choice>({
        index: 0,
        parts,
        finish: reconcileFinish(
          finish,
          parts.some((part) => part.type === "tool-call"),
        ),
        logProbabilities: decodeLogProbabilities(items),
      }),
    ],
    usage: readOpenaiUsage(fields.usage),
    serviceTier: asString(fields.service_tier),
  });
}

function decodeItems(
  items: readonly JsonObject[],
  { id, context }: { id: string; context: DecodeContext },
): AssistantPart[] {
  let startsMessage = false;
  return items.flatMap((item, index) => {
    const parts = decodeItem(item, { context, startsMessage, mintedId: mintedCallId(id, index) });
    startsMessage ||= item.type === "message" && parts.length > 0;
    return parts;
  });
}

/** An id for a call that came without one: the same for the same answer, and different for every call. */
export const mintedCallId = (responseId: string, index: number): string =>
  `call_${responseId.replace(/[^a-zA-Z0-9]/g, "").slice(-24)}_${index}`;

function decodeLogProbabilities(items: readonly JsonObject[]): Choice["logProbabilities"] {
  const content = items.flatMap((item) =>
    (asArray(item.content) ?? []).flatMap((part) => decodeTokens(asObject(part)?.logprobs)),
  );
  return content.length === 0 ? undefined : { content };
}

/** A body without output, or one that has not ended well. */
function notAnAnswer(fields: JsonObject | undefined): GatewayError {
  if (!asObject(fields?.error))
    return new GatewayError("upstream_error", "The provider's answer is no finished response.");
  const { message } = readReportedError(fields as JsonObject);
  return new GatewayError("upstream_error", message, { metadata: { upstream_message: message } });
}
