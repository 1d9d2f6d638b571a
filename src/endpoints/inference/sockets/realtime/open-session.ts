import { timeOrderedHex } from "../../../../platform/kernel/ids.ts";
import type { LlmKeyCaller } from "../../../../identity/keys/caller.ts";
import type { CallOrigin } from "../../../../inference/pipeline/inference-call.ts";
import { isFree } from "../../../../inference/pipeline/hold/hold-ceiling.ts";
import type { SessionWork } from "../../../../inference/surfaces/realtime/realtime-target.ts";
import { openAffordable } from "../../../../inference/surfaces/realtime/realtime-turn.ts";
import { openUpstream } from "./open-upstream.ts";
import type { SoundWork } from "../../../../inference/surfaces/realtime/sound-call.ts";
import { planSound, SoundMeter } from "../../../../inference/surfaces/realtime/sound-meter.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import type { Dependencies } from "../../../dependencies.ts";
import { RealtimeConnection } from "./realtime-connection.ts";
import { nextOriginOf } from "./session-origin.ts";
import { type OpenedSound, SoundConnection } from "./sound-connection.ts";
import { Transcriber } from "./transcriber.ts";

/** A session that a handshake asks for. */
export interface SessionRequest {
  origin: CallOrigin;
  /** The model; empty for a session of transcripts that names it later. */
  model: string;
  work: SessionWork;
  /** Whether a client secret opens it, which narrows the models of its key. */
  isNarrowed: boolean;
}

/** The parts with which sessions are opened. */
type SessionParts = Pick<Dependencies, "inference" | "directory" | "clock">;

/** Tokens that the first response of a session is held for, before anything was sent. */
const firstInputTokens = 512;

/**
 * Returns the origin of a session, which outlives the handshake, and what finds its caller again: the
 * key as it is now, narrowed as the client secret says.
 */
function lasting(
  { directory, clock }: Pick<SessionParts, "directory" | "clock">,
  { origin, isNarrowed }: SessionRequest,
): { origin: CallOrigin; liveCaller(): LlmKeyCaller | undefined } {
  const { key } = origin.caller;
  const gone = new AbortController();
  return {
    // Its records belong together, by the session that the client names or else by one of its own.
    origin: {
      ...origin,
      sessionId: origin.sessionId ?? `sess_${origin.traceId}`,
      signalOf: () => gone.signal,
    },
    liveCaller() {
      const live = directory.liveLlmKey(key.id, clock.nowMs());
      if (live === undefined || !isNarrowed) return live;
      return { ...live, key: { ...live.key, allowedModels: key.allowedModels } };
    },
  };
}

/** Holds the first response, and opens a session at a provider. Throws `GatewayError`. */
export async function openResponses(
  dependencies: SessionParts,
  request: SessionRequest,
): Promise<RealtimeConnection> {
  const { inference: deps } = dependencies;
  const { model, work } = request;
  const { origin, liveCaller } = lasting(dependencies, request);
  const bound = { inputTokens: firstInputTokens, maxOutputTokens: undefined };
  const { turn, cap } = await openAffordable(deps, { origin, model, bound });
  const { candidate, upstream } = await openUpstream(deps, { turn, work });
  return new RealtimeConnection({
    ...{ deps, upstream, origin, model, candidate, turn, cap },
    liveCaller,
  });
}

/**
 * Returns a session of sound. Where its model is known, its first seconds are held, and it is opened
 * at a provider. Throws `GatewayError`.
 */
export async function openSound(
  dependencies: SessionParts,
  request: SessionRequest & { work: SoundWork },
): Promise<SoundConnection> {
  const { inference: deps, clock } = dependencies;
  const { work, model } = request;
  const { origin, liveCaller } = lasting(dependencies, request);
  let next: CallOrigin | undefined = origin;
  // The first hold has the id of the handshake.
  const nextOrigin = (isOwed: boolean): CallOrigin => {
    const first = next;
    next = undefined;
    return first ?? nextOriginOf(origin, { clock, liveCaller, isOwed });
  };
  const open = async (
    named: string,
    exhaust: (error: GatewayError) => void,
  ): Promise<OpenedSound> => {
    const metering = {
      deps,
      model: named,
      work,
      byTime: work === "translation",
      nextOrigin,
      exhaust,
    };
    const turn = await planSound(metering);
    const { candidate, upstream } = await openUpstream(deps, { turn, work });
    if (
      work === "translation" &&
      !isFree(candidate) &&
      candidate.route.price?.base.inputAudioMs === undefined
    ) {
      turn.free();
      upstream.close();
      const message = `The model ${named} has no price of a minute of sound, by which translations are charged. Set audio_input_minute.`;
      throw new GatewayError("model_unavailable", message, { param: "model" });
    }
    const { id: providerId, name: providerName } = candidate.route.provider;
    return {
      upstream,
      meter: new SoundMeter(metering, { turn, candidate }),
      transcriber:
        work === "translation"
          ? new Transcriber({ deps, byTime: true, nextOrigin, exhaust, providerId, providerName })
          : undefined,
    };
  };
  const session = new SoundConnection({
    work,
    model: model === "" ? undefined : model,
    id: `sess_${timeOrderedHex(clock.nowMs())}`,
    open,
    clock,
    isAllowed: () => liveCaller() !== undefined,
  });
  if (model !== "") await session.begin(model);
  return session;
}
