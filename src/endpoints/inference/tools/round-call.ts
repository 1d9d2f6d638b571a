import type { ClientDialect } from "../../../inference/dialects/dialect.ts";
import { refuseRounds } from "../../../inference/pipeline/batches/batch-leg.ts";
import { chatCall } from "../../../inference/pipeline/chat-call.ts";
import type { ChatCall } from "../../../inference/pipeline/inference-call.ts";
import { timeOrderedHex } from "../../../platform/kernel/ids.ts";
import { editMembers } from "../../../platform/kernel/json/json-members.ts";

/** Returns the call of one round: the request with other members, under an id of its own. */
export function roundCall(
  call: ChatCall,
  {
    dialect,
    edits,
    isFirst,
    nowMs,
  }: {
    dialect: ClientDialect;
    /** New values of members; undefined removes one. */
    edits: ReadonlyMap<string, unknown>;
    isFirst: boolean;
    nowMs: number;
  },
): ChatCall {
  refuseRounds(call);
  const { presetId, dialectHeaders, signatures, nowSeconds, losses } = call;
  const body: Record<string, unknown> = { ...call.body };
  const texts = new Map<string, string | undefined>();
  for (const [name, value] of edits) {
    if (value === undefined) delete body[name];
    else body[name] = value;
    if (value !== undefined || name in call.body)
      texts.set(name, value === undefined ? undefined : JSON.stringify(value));
  }
  const text = editMembers(call.text, texts);
  const read = { dialect, presetId, dialectHeaders, signatures, nowSeconds, losses, body, text };
  // A line of a batch is answered by its last round, so no round commits it with its charge.
  const line = undefined;
  if (isFirst) return chatCall({ ...call, line }, read);
  const traceId = timeOrderedHex(nowMs);
  const generationId = `gen_${traceId}`;
  const later = { traceId, generationId, roundOf: call.generationId, admission: undefined, line };
  return chatCall({ ...call, ...later }, read);
}
