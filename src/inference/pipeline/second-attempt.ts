import type { Loss } from "../canonical/request.ts";
import { upstreamDialects } from "../dialects/index.ts";
import type { Unreadable, UnsealedRequest } from "../dialects/shared/refused-thoughts.ts";
import { namesEffort, withoutNone } from "../dialects/shared/refused-parameters.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { AttemptFailure } from "../upstream/upstream-failure.ts";
import { chatDialectOf } from "./adapt.ts";
import { takeAgain } from "./credentials/provider-credentials.ts";
import type { SealMemory } from "./credentials/seal-memory.ts";
import type { Execution } from "./execution.ts";
import type { Adapter } from "./inference-call.ts";

interface Prepared {
  candidate: Candidate;
  adapter: Adapter;
}

/**
 * Returns the request for a candidate that has just refused it, without what it refused: reasoning
 * whose seals it cannot read, or to stop reasoning. Takes the candidate's key again. Undefined where
 * the refusal is about something else, and where the caller prefers it to a loss.
 */
export function adaptedAgain(execution: Execution, prepared: Prepared): Adapter | undefined {
  const { failed, abortScope } = execution;
  const failure = failed.at(-1)?.failure;
  if (failure === undefined || failure.unsent === true || !mayLose(execution)) return undefined;
  if (abortScope.clientGone) return undefined;
  return (
    withoutRefusedSeals(execution, { ...prepared, failure }) ??
    withLeastEffort(execution, { ...prepared, failure })
  );
}

const mayLose = ({ call, losesNothing }: Execution): boolean =>
  call.surface === "chat" && call.leg === undefined && !losesNothing;

interface Refused extends Prepared {
  failure: AttemptFailure;
}

/**
 * Returns the request without the reasoning whose seals the candidate cannot read: another
 * organisation, region or vendor made them, which the gateway cannot tell by their mark
 * (docs/decisions/0418).
 */
function withoutRefusedSeals(
  execution: Execution,
  { candidate, adapter, failure }: Refused,
): Adapter | undefined {
  const refusal = { code: failure.upstreamCode, message: failure.upstreamMessage ?? "" };
  const unsealed = unsealedFor({ candidate, adapter }, { refusal });
  if (unsealed === undefined || !takeAgain(execution, candidate)) return undefined;
  execution.deps.sealMemory.note(candidate, unsealed.seals);
  return unsealedAdapter(adapter, { unsealed, body: execution.call.body });
}

/**
 * Returns the request without the reasoning whose seals the candidate's account has refused in an
 * earlier turn (docs/decisions/0431).
 */
export const withoutKnownSeals = (execution: Execution, prepared: Prepared): Adapter =>
  mayLose(execution)
    ? withoutRemembered(execution.deps.sealMemory, {
        ...prepared,
        body: execution.call.body,
      })
    : prepared.adapter;

/** Returns a request without the reasoning whose seals are remembered as refused. */
export function withoutRemembered(
  memory: SealMemory,
  { candidate, adapter, body }: Prepared & { body: Fields },
): Adapter {
  const isRefused = memory.refusedOf(candidate, () => textOf(adapter));
  const unsealed = isRefused && unsealedFor({ candidate, adapter }, { isRefused });
  return unsealed === undefined ? adapter : unsealedAdapter(adapter, { unsealed, body });
}

type Fields = Readonly<Record<string, unknown>>;

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
  adapter: Adapter,
  { unsealed, body }: { unsealed: UnsealedRequest; body: Fields },
): Adapter => ({
  ...adapter,
  requestText: unsealed.text,
  requestParts: undefined,
  losses: [...adapter.losses, ...lossesOf(unsealed, body)],
});

/** Returns what the request has lost, by the names of the client's own fields. */
function lossesOf({ seals, stopsThinking, lacksHistory }: UnsealedRequest, body: Fields): Loss[] {
  const field = ["input", "contents"].find((name) => name in body) ?? "messages";
  const summary = lacksHistory === true ? ", a summary of earlier turns among them" : "";
  const reason = `the provider cannot read ${seals.length} sealed parts of the conversation${summary}`;
  if (!stopsThinking) return [{ field, reason }];
  return [
    { field, reason },
    {
      field: thinkingField(body),
      reason: "the calls under way were made without thoughts of this model",
    },
  ];
}

/** Returns the field by which a client says whether the model reasons. */
const thinkingField = (body: Fields): string => ("thinking" in body ? "thinking" : "reasoning");

/**
 * Returns the request with the least effort that the model knows, where it refused to be sent
 * `none` for a client that did not name an effort: the contract's word for reasoning that is off
 * (docs/decisions/0445).
 */
function withLeastEffort(
  execution: Execution,
  { candidate, adapter, failure }: Refused,
): Adapter | undefined {
  const { body } = execution.call;
  const { route, model } = candidate;
  const { upstreamStatus, upstreamCode, upstreamMessage, upstreamError } = failure;
  if ((upstreamStatus !== 400 && upstreamStatus !== 422) || namesEffort(body)) return undefined;
  const requestText = withoutNone(textOf(adapter), {
    code: upstreamCode,
    message: `${upstreamError?.param ?? ""} ${upstreamMessage ?? ""}`,
    declared: (route.reasoning ?? model.reasoning)?.levels ?? [],
  });
  if (requestText === undefined || !takeAgain(execution, candidate)) return undefined;
  const reason = "the model cannot stop thinking; it thinks as little as it can";
  return {
    ...adapter,
    requestText,
    requestParts: undefined,
    losses: [...adapter.losses, { field: thinkingField(body), reason }],
  };
}
