import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Usage } from "../../../platform/kernel/usage.ts";
import type { Execution, InferenceDependencies } from "../../pipeline/execution.ts";
import { beginExecution } from "../../pipeline/begin-execution.ts";
import { isFree, listCeiling } from "../../pipeline/hold/hold-ceiling.ts";
import type { CallOrigin, InferenceCall } from "../../pipeline/inference-call.ts";
import { takeKey } from "../../pipeline/credentials/provider-credentials.ts";
import type { Settled } from "../../pipeline/served-answer.ts";
import { settle } from "../../pipeline/settlement/settle.ts";
import type { Candidate } from "../../routing/candidate.ts";
import { realtimeCall, type ResponseBound } from "./realtime-call.ts";

/** How a response of a session ended. */
export interface EndedTurn {
  usage: Usage;
  /** Whether the provider reported no usage, so that it was counted here. */
  estimated: boolean;
  status: "completed" | "cancelled" | "cut";
  finishReason: string | null;
  upstreamId: string | null;
  firstContentMs: number | null;
}

/** A call of a session, and the size that its hold covers: tokens of a prompt, or ms of sound. */
export interface SizedCall {
  call: InferenceCall;
  size: number;
}

/**
 * The money of one response of a session, or of a stretch of sound: its hold, which grows with what
 * is sent, and its charge and record.
 */
export class RealtimeTurn {
  readonly execution: Execution;
  private readonly deps: InferenceDependencies;
  private readonly call: InferenceCall;
  private candidate: Candidate | undefined;
  private heldSize: number;
  private isOpen = true;

  private constructor(deps: InferenceDependencies, execution: Execution, heldSize: number) {
    this.deps = deps;
    this.execution = execution;
    this.call = execution.call;
    this.heldSize = heldSize;
  }

  /**
   * Plans a call and holds its worst case. Throws `GatewayError` where the caller may not have it or
   * cannot pay for it.
   */
  static async open(deps: InferenceDependencies, { call, size }: SizedCall): Promise<RealtimeTurn> {
    return new RealtimeTurn(deps, await beginExecution(deps, call), size);
  }

  /** Where the call came from; its ids are those of the hold and of the record. */
  get origin(): CallOrigin {
    return this.call;
  }

  /**
   * Settles on the provider that serves, with its credential; undefined where the quota of its key
   * is used up.
   */
  serveBy(candidate: Candidate): Candidate | undefined {
    this.candidate = takeKey(this.execution, candidate);
    return this.candidate;
  }

  /** Settles on a provider by its id, where it is still allowed. */
  serveByProvider(providerId: string): Candidate | undefined {
    const candidate = this.execution.candidates.find(
      ({ route }) => route.provider.id === providerId,
    );
    return candidate && this.serveBy(candidate);
  }

  /**
   * Raises the hold to a larger size, or to a call that costs more at its size (`isDearer`). The call
   * is built only where it is needed. Resolves with false where that cannot be paid; a turn that was
   * settled or freed meanwhile needs no more.
   */
  async cover(
    size: number,
    callOf: (origin: CallOrigin) => InferenceCall,
    { isDearer = false } = {},
  ): Promise<boolean> {
    const { candidate, deps, call } = this;
    if (!this.isOpen || candidate === undefined || isFree(candidate)) return true;
    if (size <= this.heldSize && !isDearer) return true;
    const { requirements } = callOf(call);
    const inputTokens = requirements.estimateInputTokens();
    const wantedNano = listCeiling(candidate, { ...requirements, inputTokens }) + 1n;
    const heldNano = await deps.ledger.grow(call.generationId, wantedNano);
    if (heldNano < wantedNano) return !this.isOpen;
    this.heldSize = Math.max(size, this.heldSize);
    return true;
  }

  /** Charges the response and writes its record. Resolves when the charge is durable. */
  async settle(ended: EndedTurn): Promise<Settled | undefined> {
    const { candidate, call, execution, deps } = this;
    if (!this.isOpen || candidate === undefined) return undefined;
    this.isOpen = false;
    const { startedMs } = call;
    const nowMs = deps.clock.monotonicMs();
    const { model, route } = candidate;
    const outcome = ended.status === "cancelled" ? "cancelled" : "served";
    return settle(deps, {
      call,
      candidate,
      losses: [],
      outputCap: undefined,
      routing: undefined,
      requestedModel: execution.requestedModel,
      metered: { usage: ended.usage, estimated: ended.estimated, clamped: false },
      finishReason: ended.finishReason,
      status: ended.status,
      streamed: true,
      passedCap: false,
      upstreamId: ended.upstreamId,
      attempts: [
        {
          provider: route.provider.id,
          model: model.id,
          upstreamModel: route.upstreamModel,
          status: 101,
          outcome,
          reason: null,
          durationMs: Math.round(nowMs - startedMs),
        },
      ],
      timing: {
        startedMs,
        firstSendMs: startedMs,
        firstContentMs: ended.firstContentMs,
        upstreamEndMs: nowMs,
      },
    });
  }

  /** Frees the hold of a response that did not come. */
  free(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.deps.ledger.void(this.call.generationId);
    this.deps.providerKeys.release(this.call.generationId);
  }
}

/** Output caps that are tried where a caller cannot pay for the one that was asked for. */
const lowerCaps = [1_024, 256, 64];

/**
 * Opens the turn of a response, with the largest of some output caps that the caller can pay for;
 * `cap` is undefined where nothing was lowered. Throws as `RealtimeTurn.open` does.
 */
export async function openAffordable(
  deps: InferenceDependencies,
  options: { origin: CallOrigin; model: string; bound: ResponseBound },
): Promise<{ turn: RealtimeTurn; cap: number | undefined }> {
  const { bound } = options;
  const asked = bound.maxOutputTokens ?? Infinity;
  let refusal: unknown;
  for (const cap of [undefined, ...lowerCaps.filter((each) => each < asked)]) {
    try {
      const maxOutputTokens = cap ?? bound.maxOutputTokens;
      const call = realtimeCall(options.origin, {
        model: options.model,
        bound: { ...bound, maxOutputTokens },
      });
      const turn = await RealtimeTurn.open(deps, { call, size: bound.inputTokens });
      return { turn, cap: cap ?? undefined };
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status !== 402) throw error;
      refusal ??= error;
    }
  }
  throw refusal;
}

/** Returns the error for a session that can hold nothing more. */
export const exhausted = (): GatewayError =>
  new GatewayError(
    "insufficient_balance",
    "The balance or the limit of the key does not cover the next response. Add credits or raise the limit, and connect again.",
  );
