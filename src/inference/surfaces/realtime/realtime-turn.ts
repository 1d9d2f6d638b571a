import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Usage } from "../../../platform/kernel/usage.ts";
import type { Execution, InferenceDependencies } from "../../pipeline/execution.ts";
import { prepare } from "../../pipeline/execution.ts";
import { isFree, listCeiling } from "../../pipeline/hold/hold-ceiling.ts";
import type { CallOrigin, InferenceCall } from "../../pipeline/inference-call.ts";
import { takeKey } from "../../pipeline/provider-credentials.ts";
import { type Settled, settle } from "../../pipeline/settle.ts";
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

/**
 * The money of one response of a session: its hold, which grows with what is sent, and its charge
 * and record.
 */
export class RealtimeTurn {
  readonly execution: Execution;
  private readonly deps: InferenceDependencies;
  private readonly model: string;
  private readonly call: InferenceCall;
  private candidate: Candidate | undefined;
  private heldTokens: number;
  private isOpen = true;

  private constructor(options: {
    deps: InferenceDependencies;
    execution: Execution;
    model: string;
    bound: ResponseBound;
  }) {
    this.deps = options.deps;
    this.execution = options.execution;
    this.call = options.execution.call;
    this.model = options.model;
    this.heldTokens = options.bound.inputTokens;
  }

  /**
   * Plans a response and holds its worst case. Throws `GatewayError` where the caller may not have
   * it or cannot pay for it.
   */
  static async open(
    deps: InferenceDependencies,
    { origin, model, bound }: { origin: CallOrigin; model: string; bound: ResponseBound },
  ): Promise<RealtimeTurn> {
    const execution = await prepare(deps, realtimeCall(origin, { model, bound }));
    return new RealtimeTurn({ deps, execution, model, bound });
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

  /** Raises the hold to a larger bound; resolves with false where that cannot be paid. */
  async cover(bound: ResponseBound): Promise<boolean> {
    const { candidate, deps, call } = this;
    if (bound.inputTokens <= this.heldTokens || candidate === undefined || isFree(candidate))
      return true;
    const { requirements } = realtimeCall(call, { model: this.model, bound });
    const wantedNano =
      listCeiling(candidate, { ...requirements, inputTokens: bound.inputTokens }) + 1n;
    const heldNano = await deps.ledger.grow(call.generationId, wantedNano);
    if (heldNano < wantedNano) return false;
    this.heldTokens = bound.inputTokens;
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
      const turn = await RealtimeTurn.open(deps, {
        ...options,
        bound: { ...bound, maxOutputTokens },
      });
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
