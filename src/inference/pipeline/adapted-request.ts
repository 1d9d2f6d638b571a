import type { Loss } from "../canonical/request.ts";
import { upstreamDialects } from "../dialects/index.ts";
import type { Unreadable, UnsealedRequest } from "../dialects/shared/refused-thoughts.ts";
import { namesEffort, withoutNone } from "../dialects/shared/reasoning-rules.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { AttemptFailure } from "../upstream/upstream-failure.ts";
import { chatDialectOf } from "./adapt.ts";
import { takeAgain } from "./credentials/provider-credentials.ts";
import type { SealMemory } from "./credentials/seal-memory.ts";
import type { Execution } from "./execution.ts";
import type { Adapter } from "./inference-call.ts";
import { countText } from "../../platform/kernel/count-text.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { outputCapFor } from "./hold/take-hold.ts";
import { namesIds, withScopedIds } from "../dialects/shared/end-user-ids.ts";

/** A request as it is sent to one candidate. */
export interface AdaptedRequest {
  adapter: Adapter;
  /** The output cap in it that replaces a larger one; undefined where none was lowered. */
  outputCap: number | undefined;
}

/** Adapts the request to a candidate; undefined, and noted, where that is impossible or too dear. */
export function adapterFor(execution: Execution, candidate: Candidate): AdaptedRequest | undefined {
  const { call, losesNothing, notCalled } = execution;
  try {
    const outputCap = outputCapFor(execution, candidate);
    const { model, route } = candidate;
    const adapter = call.adapt(outputCap === undefined ? candidate : { model, route, outputCap });
    if (!losesNothing || adapter.losses.length === 0)
      return { adapter: scoped(execution, { candidate, adapter }), outputCap };
    notCalled.push(wouldLose(candidate, adapter.losses));
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    notCalled.push(error);
  }
  return undefined;
}

/** Scopes the ids of the caller's users by workspace, where the platform's credential serves. */
function scoped(
  execution: Execution,
  { candidate, adapter }: { candidate: Candidate; adapter: Adapter },
): Adapter {
  if (candidate.credential !== undefined) return adapter;
  const { pieces } = adapter;
  if (pieces !== undefined) {
    const each = pieces.each.map((piece) => scoped(execution, { candidate, adapter: piece }));
    return { ...adapter, pieces: { ...pieces, each } };
  }
  const { deps, call } = execution;
  const { route } = candidate;
  const { id } = call.caller.workspace;
  if (adapter.withEndUser !== undefined)
    return adapter.withEndUser((endUserId) => deps.scopedId(`${id} ${endUserId}`));
  if (!namesIds(call.body)) return adapter;
  const options = {
    inMetadata:
      call.surface === "chat" && upstreamDialects[chatDialectOf(route)].userInMetadata === true,
    scope: (endUserId: string) => deps.scopedId(`${id} ${endUserId}`),
  };
  const edited = withScopedIds(adapter.requestText, options);
  return edited === undefined
    ? adapter
    : { ...adapter, requestText: edited.text, requestParts: edited.parts };
}

function wouldLose({ route }: Candidate, losses: readonly Loss[]): GatewayError {
  const fields = [...new Set(losses.map(({ field }) => field))];
  const message =
    "No provider takes every parameter of this request, as provider.require_parameters asks; " +
    `${route.provider.name} does not support: ${fields.slice(0, 10).join(", ")}.`;
  return new GatewayError("no_upstream", message, {
    param: fields[0] ?? "model",
    metadata: {
      translation_loss: losses.slice(0, 20).map(({ field, reason }) => ({ field, reason })),
    },
  });
}

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
  const reason = `the provider cannot read ${countText(seals.length, "sealed part")} of the conversation${summary}`;
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
