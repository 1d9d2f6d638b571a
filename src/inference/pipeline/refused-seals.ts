import type { Loss } from "../canonical/request.ts";
import { upstreamDialects } from "../dialects/index.ts";
import type { UnsealedRequest } from "../dialects/dialect.ts";
import { chatDialectOf } from "./adapt.ts";
import { takeAgain } from "./credentials/provider-credentials.ts";
import type { Execution } from "./execution.ts";
import type { Adapter } from "./inference-call.ts";
import type { Candidate } from "../routing/candidate.ts";

/**
 * Returns the request that a candidate has just refused, without the reasoning whose seals it cannot
 * read: another organisation, region or vendor made them, which the gateway cannot tell by their
 * mark. Takes the candidate's key again. Undefined where the refusal is about something else, and
 * where the caller prefers it to a loss (docs/decisions/0418).
 */
export function withoutRefusedSeals(
  execution: Execution,
  { candidate, adapter }: { candidate: Candidate; adapter: Adapter },
): Adapter | undefined {
  const { call, failed, abortScope, losesNothing } = execution;
  const failure = failed.at(-1)?.failure;
  const isSent = call.surface === "chat" && call.leg === undefined;
  if (failure === undefined || failure.unsent === true || !isSent) return undefined;
  if (losesNothing || abortScope.clientGone) return undefined;
  const { withoutSeals } = upstreamDialects[chatDialectOf(candidate.route)];
  const unsealed = withoutSeals?.(adapter.requestParts?.join("") ?? adapter.requestText, {
    code: failure.upstreamCode,
    message: failure.upstreamMessage ?? "",
  });
  if (unsealed === undefined || !takeAgain(execution, candidate)) return undefined;
  return {
    ...adapter,
    requestText: unsealed.text,
    requestParts: undefined,
    losses: [...adapter.losses, ...lossesOf(unsealed, call.body)],
  };
}

/** Returns what the request has lost, by the names of the client's own fields. */
function lossesOf(
  { blocks, stopsThinking }: UnsealedRequest,
  body: Readonly<Record<string, unknown>>,
): Loss[] {
  const field = ["input", "contents"].find((name) => name in body) ?? "messages";
  const reason = `the provider cannot read ${blocks} of the conversation's sealed thoughts`;
  if (!stopsThinking) return [{ field, reason }];
  const thinking = "thinking" in body ? "thinking" : "reasoning";
  return [
    { field, reason },
    { field: thinking, reason: "the calls under way were made without thoughts of this model" },
  ];
}
