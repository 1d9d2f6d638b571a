import type { Loss } from "../canonical/request.ts";
import { upstreamDialects } from "../dialects/index.ts";
import { chatDialectOf } from "./adapt.ts";
import { takeAgain } from "./credentials/provider-credentials.ts";
import type { Execution } from "./execution.ts";
import type { Adapter } from "./inference-call.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { Unreadable, UnsealedRequest } from "../dialects/shared/refused-thoughts.ts";

interface Prepared {
  candidate: Candidate;
  adapter: Adapter;
}

/**
 * Returns the request that a candidate has just refused, without the reasoning whose seals it cannot
 * read: another organisation, region or vendor made them, which the gateway cannot tell by their
 * mark. Takes the candidate's key again. Undefined where the refusal is about something else, and
 * where the caller prefers it to a loss (docs/decisions/0418).
 */
export function withoutRefusedSeals(
  execution: Execution,
  { candidate, adapter }: Prepared,
): Adapter | undefined {
  const { failed, abortScope, deps } = execution;
  const failure = failed.at(-1)?.failure;
  if (failure === undefined || failure.unsent === true || !mayLoseSeals(execution))
    return undefined;
  if (abortScope.clientGone) return undefined;
  const refusal = { code: failure.upstreamCode, message: failure.upstreamMessage ?? "" };
  const unsealed = unsealedFor({ candidate, adapter }, { refusal });
  if (unsealed === undefined || !takeAgain(execution, candidate)) return undefined;
  deps.sealMemory.note(candidate, unsealed.seals);
  return unsealedAdapter(execution, { adapter, unsealed });
}

/**
 * Returns the request without the reasoning whose seals the candidate's account has refused in an
 * earlier turn (docs/decisions/0431).
 */
export function withoutKnownSeals(execution: Execution, { candidate, adapter }: Prepared): Adapter {
  if (!mayLoseSeals(execution)) return adapter;
  const isRefused = execution.deps.sealMemory.refusedOf(candidate, () => textOf(adapter));
  const unsealed = isRefused && unsealedFor({ candidate, adapter }, { isRefused });
  return unsealed === undefined ? adapter : unsealedAdapter(execution, { adapter, unsealed });
}

const mayLoseSeals = ({ call, losesNothing }: Execution): boolean =>
  call.surface === "chat" && call.leg === undefined && !losesNothing;

const textOf = ({ requestParts, requestText }: Adapter): string =>
  requestParts?.join("") ?? requestText;

function unsealedFor(
  { candidate: { route }, adapter }: Prepared,
  unreadable: Unreadable,
): UnsealedRequest | undefined {
  const { withoutSeals } = upstreamDialects[chatDialectOf(route)];
  return withoutSeals?.(textOf(adapter), unreadable, route.upstreamModel);
}

const unsealedAdapter = (
  { call }: Execution,
  { adapter, unsealed }: { adapter: Adapter; unsealed: UnsealedRequest },
): Adapter => ({
  ...adapter,
  requestText: unsealed.text,
  requestParts: undefined,
  losses: [...adapter.losses, ...lossesOf(unsealed, call.body)],
});

/** Returns what the request has lost, by the names of the client's own fields. */
function lossesOf(
  { seals, stopsThinking, lacksHistory }: UnsealedRequest,
  body: Readonly<Record<string, unknown>>,
): Loss[] {
  const field = ["input", "contents"].find((name) => name in body) ?? "messages";
  const summary = lacksHistory === true ? ", a summary of earlier turns among them" : "";
  const reason = `the provider cannot read ${seals.length} sealed parts of the conversation${summary}`;
  if (!stopsThinking) return [{ field, reason }];
  const thinking = "thinking" in body ? "thinking" : "reasoning";
  return [
    { field, reason },
    { field: thinking, reason: "the calls under way were made without thoughts of this model" },
  ];
}
