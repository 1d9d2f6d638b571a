import { readWhole, sendTo, type Whole } from "./attempt.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { Interpretation, RequestPieces, WholeAnswer } from "./interpret/interpretation.ts";
import type { Candidate } from "./routing/candidate.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";
import type { Abortable, ExchangeTie, Lifeline } from "./upstream/lifeline.ts";

/** What became of a request that was sent in pieces; `accepted` tells that the provider answered one of them with success. */
export type Joined = { accepted: boolean } & (
  | { ok: true; answer: WholeAnswer; status: number }
  | { ok: false; failure: AttemptFailure }
);

/** The exchanges of one attempt, which end together. */
class ExchangeBundle implements Abortable, ExchangeTie {
  private readonly open = new Set<Abortable>();
  private readonly lifeline: Lifeline;
  private over = false;

  constructor(lifeline: Lifeline) {
    this.lifeline = lifeline;
    lifeline.attach(this);
  }

  get clientGone(): boolean {
    return this.over || this.lifeline.clientGone;
  }

  get heardClientLeave(): boolean {
    return this.over || this.lifeline.heardClientLeave;
  }

  attach(abortable: Abortable): void {
    if (this.over) abortable.abort();
    else this.open.add(abortable);
  }

  listen(): void {
    this.lifeline.listen();
  }

  abort(): void {
    this.over = true;
    for (const abortable of this.open) abortable.abort();
    this.open.clear();
  }
}

/**
 * Sends a request to a candidate piece by piece, some at once. The first failure is that of the whole
 * attempt and ends the pieces that are still under way.
 */
export async function askInPieces(
  deps: InferenceDependencies,
  {
    pieces,
    lifeline,
    ...asked
  }: { call: InferenceCall; candidate: Candidate; pieces: RequestPieces; lifeline: Lifeline },
): Promise<Joined> {
  const bundle = new ExchangeBundle(lifeline);
  const waiting = pieces.each.values();
  let failure: AttemptFailure | undefined;
  let accepted = false;
  let status = 200;
  const askOne = async (interpretation: Interpretation): Promise<Whole> => {
    const sent = await sendTo(deps, { ...asked, interpretation, lifeline: bundle });
    if (!sent.ok) return sent;
    accepted = true;
    status = sent.response.status;
    return readWhole(sent.response, interpretation);
  };
  const askOnward = async (): Promise<void> => {
    for (const interpretation of waiting) {
      const whole = await askOne(interpretation);
      if (failure !== undefined) return;
      if (whole.ok) continue;
      failure = whole.failure;
      bundle.abort();
      return;
    }
  };
  await Promise.all(
    Array.from({ length: Math.min(pieces.parallel, pieces.each.length) }, askOnward),
  );
  return failure === undefined
    ? { ok: true, accepted, answer: pieces.join(), status }
    : { ok: false, accepted, failure };
}
