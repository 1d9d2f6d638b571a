import type { LedgerPort } from "../../../billing/ledger/ledger-port.ts";
import { totalOutputTokens } from "../../../platform/kernel/usage.ts";
import type { MeteredUsage } from "../../canonical/response.ts";
import { takesCap } from "../../dialects/shared/requirements.ts";
import type { SseEvent, StreamRelay } from "../../dialects/shared/stream/stream-relay.ts";
import {
  holdsMedia,
  saysSomething,
  type LeastTokens,
  leastTokensOf,
  TokenFloor,
} from "../../dialects/shared/stream/least-tokens.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { EventReader } from "../../upstream/sse-decoder.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";
import type { Execution, Allowance } from "../execution.ts";
import type { InferenceCall } from "../inference-call.ts";
import {
  costOfTokens,
  isPaid,
  outputCap as capOf,
  type ExpectedUse,
  expectedUse,
  affordedBy,
} from "./hold-ceiling.ts";

/** The stream whose next event is asked for. */
export interface WatchedStream {
  reader: EventReader;
  relay: StreamRelay;
  response: Pick<UpstreamResponse, "abort">;
}

/** Decides of each event of a stream whether it is passed on. */
export interface StreamGuard {
  /**
   * Returns the frames of the next event or events; undefined where more has to be read. Where the
   * answer has to end, aborts the upstream and returns frames that end it at its limit.
   */
  next(stream: WatchedStream): string | Promise<string> | undefined;
}

/**
 * The tokens by which a hold grows ahead of its stream, and of reasoning that a provider counts beside
 * the cap.
 */
const stepTokens = 4_096;
/** Reads of a stream between two looks at the provider's own count. */
const readsBetweenCounts = 32;

/**
 * Returns the tokens beyond which an answer has certainly passed a cap. Providers count a few more
 * than they were asked for.
 */
const beyond = (capTokens: number): number => Math.ceil(capTokens * 1.02) + 16;

/** Returns the cap that a provider was asked to keep; undefined where it was sent none. */
function sentCap(
  { surface, requirements }: Pick<InferenceCall, "surface" | "requirements">,
  { candidate, outputCap }: { candidate: Candidate; outputCap: number | undefined },
): number | undefined {
  const { maxOutputTokens, thoughtTokens, choices, isUncut } = requirements;
  const { deviations } = candidate.route.provider;
  if (surface !== "chat" || isUncut || !takesCap(deviations)) return undefined;
  if (outputCap !== undefined) return outputCap * choices;
  if (maxOutputTokens === undefined) return undefined;
  const expected = { maxOutputTokens, thoughtTokens, inputTokens: 0, choices };
  return capOf(candidate, expected) * choices;
}

/** Returns whether a model may reason, which some providers count beside the cap. */
const mayThink = (
  { model, route }: Candidate,
  { thinks }: InferenceCall["requirements"],
): boolean =>
  thinks !== false &&
  (thinks === true ||
    route.reasoningFeature === true ||
    (route.reasoning ?? model.reasoning) !== undefined);

/**
 * Returns the tokens by which an answer passed the cap that its provider was sent; undefined where
 * it kept the cap, as far as that can be known. `passedCap` says that the gateway cut it for that.
 */
export function tokensPastCap(
  call: Pick<InferenceCall, "surface" | "requirements">,
  answer: {
    candidate: Candidate;
    outputCap: number | undefined;
    metered: MeteredUsage;
    passedCap: boolean;
  },
): number | undefined {
  const capTokens = sentCap(call, answer);
  if (capTokens === undefined) return undefined;
  const { usage, estimated } = answer.metered;
  const visible = totalOutputTokens(usage) - (usage.reasoningTokens ?? 0);
  const isPast = answer.passedCap || (!estimated && visible > beyond(capTokens));
  return isPast ? Math.max(1, totalOutputTokens(usage) - capTokens) : undefined;
}

/**
 * Ends a stream that certainly passes what its hold affords: its provider ignores the output cap.
 * Counts only what cannot be fewer tokens, so that a provider that keeps its cap is never cut.
 */
export class OutputWatch implements StreamGuard {
  /** Whether the provider passed its cap and was cut. */
  hasCut = false;
  private readonly ledger: Pick<LedgerPort, "grow">;
  private readonly holdId: string;
  private readonly growing: StreamAllowance | undefined;
  private readonly costOf: (tokens: number) => bigint;
  /** The tokens of everything, and of what is visible, beyond which the answer ends. */
  private limitTokens: number;
  private readonly visibleTokens: number;
  /** Whether the hold grows with output that the cap does not bound. */
  private readonly mayGrow: boolean;
  /** The characters from which on tokens are counted; fewer cannot be many tokens. */
  private readonly countedFrom: number;
  private readonly floor = new TokenFloor();
  private readonly isMixed: boolean;
  private readonly counted: LeastTokens = { visible: 0, thought: 0 };
  /** The provider's own count, as far as it streams one. */
  private reported = { visible: 0, total: 0 };
  /** Whether the last event was passed on without being counted. */
  private hasGap = false;
  private readsLeft = readsBetweenCounts;

  private constructor(
    { deps, call, allowance }: Execution,
    options: {
      candidate: Candidate;
      expected: ExpectedUse;
      capTokens: number;
      isSent: boolean;
      growing: StreamAllowance | undefined;
    },
  ) {
    const { candidate, expected, capTokens, isSent, growing } = options;
    this.ledger = deps.ledger;
    this.holdId = call.generationId;
    this.growing = growing;
    // Prices of rare parts are asked of the conversation, which an open stream does not keep.
    const { mayUse: _, ...plain } = expected;
    this.costOf = (tokens) => costOfTokens(tokens, candidate, plain);
    this.limitTokens = beyond(capTokens);
    this.visibleTokens = isSent ? this.limitTokens : Number.POSITIVE_INFINITY;
    this.mayGrow = !isSent || mayThink(candidate, call.requirements);
    this.countedFrom = allowance === undefined ? 2 * capTokens : 0;
    this.isMixed = expected.choices > 1;
  }

  /** Returns the watch of a stream; undefined where it costs no credits. */
  static of(
    execution: Execution,
    sent: { candidate: Candidate; outputCap: number | undefined },
  ): OutputWatch | undefined {
    const { candidate, outputCap } = sent;
    const { call } = execution;
    // Pictures and sound are held whole, and their length is no output cap.
    if (!isPaid(candidate) || call.unbilled || call.requirements.mediaAt !== undefined)
      return undefined;
    const expected = expectedUse(execution);
    const cap = sentCap(call, sent);
    const most = outputCap ?? capOf(candidate, expected);
    return new OutputWatch(execution, {
      candidate,
      expected,
      capTokens: cap ?? most * expected.choices,
      isSent: cap !== undefined,
      growing: StreamAllowance.of(execution, sent),
    });
  }

  next(stream: WatchedStream): string | Promise<string> | undefined {
    const { reader, relay } = stream;
    this.readsLeft -= 1;
    const left =
      this.readsLeft > 0 && this.growing === undefined
        ? this.countedFrom - relay.outputCharacters
        : 0;
    if (reader.text.length - reader.position < left) {
      const alike = relay.acceptAlike?.(reader) ?? "";
      if (alike !== "") return this.uncounted(alike);
    } else {
      // Each token has a character at least.
      this.texts.charactersMax = this.tokensLeft(relay);
      const alike =
        this.texts.charactersMax > 0 ? relay.acceptAlike?.(reader, this.texts) : undefined;
      if (alike !== undefined && alike !== "") return alike;
    }
    const event = reader.next();
    if (event === undefined) return undefined;
    if (event.data.length < left) return this.uncounted(relay.accept(event));
    const said = this.countIn(event.data);
    const within = this.affords(relay, said);
    const judge = (isWithin: boolean) => this.judge({ event, said, isWithin }, stream);
    return within instanceof Promise ? within.then(judge) : judge(within);
  }

  /** Returns how many tokens may come for certain; 0 where each event has to be judged. */
  private tokensLeft(relay: StreamRelay): number {
    if (this.growing !== undefined || this.isMixed) return 0;
    if (this.readsLeft <= 0) this.readCount(relay);
    const { counted, reported } = this;
    const visible = Math.max(counted.visible, reported.visible);
    const all = Math.max(visible + counted.thought, reported.total);
    return Math.min(this.visibleTokens - visible, this.limitTokens - all);
  }

  /** Counts the texts of events that are not decoded. */
  private readonly texts = {
    charactersMax: 0,
    note: (text: string, { isThought }: { isThought: boolean }): void => {
      if (this.hasGap) this.floor.resume();
      this.hasGap = false;
      this.texts.charactersMax -= text.length;
      this.counted[isThought ? "thought" : "visible"] += this.floor.add(text);
    },
  };

  private uncounted<Frames>(frames: Frames): Frames {
    this.hasGap = true;
    return frames;
  }

  private countIn(data: string): LeastTokens {
    if (this.isMixed || this.hasGap) this.floor.resume();
    this.hasGap = false;
    return leastTokensOf(data, this.floor);
  }

  /** Returns whether the hold pays for all that came, and for what an event says. */
  private affords(relay: StreamRelay, said: LeastTokens): boolean | Promise<boolean> {
    if (this.readsLeft <= 0) this.readCount(relay);
    const { reported } = this;
    const visible = Math.max(this.counted.visible + said.visible, reported.visible);
    const tokens = Math.max(visible + this.counted.thought + said.thought, reported.total);
    if (visible > this.visibleTokens) return false;
    if (tokens <= this.limitTokens) return true;
    return this.mayGrow && this.grow(tokens);
  }

  private readCount(relay: StreamRelay): void {
    this.readsLeft = readsBetweenCounts;
    const { usage, estimated } = relay.metered();
    if (estimated) return;
    const total = totalOutputTokens(usage);
    this.reported = { total, visible: total - (usage.reasoningTokens ?? 0) };
  }

  private grow(tokens: number): boolean | Promise<boolean> {
    const aheadNano = this.costOf(tokens + stepTokens);
    const grown = this.ledger.grow(this.holdId, aheadNano);
    const conclude = (heldNano: bigint): boolean => {
      if (heldNano < this.costOf(tokens)) return false;
      this.limitTokens = heldNano < aheadNano ? tokens : tokens + stepTokens;
      return true;
    };
    return grown instanceof Promise ? grown.then(conclude) : conclude(grown);
  }

  private judge(
    counted: { event: SseEvent; said: LeastTokens; isWithin: boolean },
    stream: WatchedStream,
  ): string | Promise<string> {
    const { relay } = stream;
    // What ends a stream before any content is no answer.
    if (!counted.isWithin && relay.hasContent && !relay.finished) {
      this.hasCut = true;
      return end(stream);
    }
    const covered = this.growing?.admits(relay, counted.event.data) ?? true;
    const pass = (isCovered: boolean): string | Promise<string> =>
      isCovered ? this.pass(counted, relay) : end(stream);
    return covered instanceof Promise ? covered.then(pass) : pass(covered);
  }

  private pass(
    { event, said }: { event: SseEvent; said: LeastTokens },
    relay: StreamRelay,
  ): string | Promise<string> {
    const before = relay.outputCharacters;
    const frames = relay.accept(event);
    // An event may also carry texts that are no output, such as those of citations.
    if (relay.outputCharacters - before >= said.visible + said.thought) {
      this.counted.visible += said.visible;
      this.counted.thought += said.thought;
    }
    return frames;
  }
}

function end({ relay, response }: WatchedStream): Promise<string> {
  response.abort();
  return relay.endAtCap();
}

/**
 * The fewest characters that a token is assumed to have, for text that its provider has not counted
 * yet.
 */
const charactersPerToken = 3;

/** Matches characters that may be a token each: those beyond ASCII, literal or escaped. */
const wideCharacter = /[^\x00-\x7f]|\\u[0-9a-fA-F]{4}/g;

type StreamProgress = Pick<StreamRelay, "finished" | "outputCharacters" | "metered">;

/** A hold that grows ahead of its stream, for one candidate. */
class StreamAllowance {
  private readonly ledger: Pick<LedgerPort, "grow">;
  private readonly holdId: string;
  private readonly allowance: Allowance;
  private readonly costOf: (tokens: number) => bigint;
  /** The stream's cost at the cap that its provider was given. The hold never has to exceed it. */
  private readonly mostNano: bigint;
  private wideCharacters = 0;
  /** Output tokens that the hold is known to cover. */
  private coveredTokens = 0;

  private constructor(
    { deps, call, allowance }: Execution & { allowance: Allowance },
    {
      candidate,
      expected,
      mostTokens,
    }: { candidate: Candidate; expected: ExpectedUse; mostTokens: number },
  ) {
    this.ledger = deps.ledger;
    this.holdId = call.generationId;
    this.allowance = allowance;
    this.costOf = (tokens) => costOfTokens(tokens, candidate, expected);
    this.mostNano = this.costOf(mostTokens);
  }

  /**
   * Returns the allowance of a stream whose hold has to grow; undefined where the hold covers all
   * that can be generated.
   */
  static of(
    execution: Execution,
    { candidate, outputCap }: { candidate: Candidate; outputCap: number | undefined },
  ): StreamAllowance | undefined {
    const { allowance } = execution;
    if (allowance?.grows !== true || !isPaid(candidate) || execution.call.unbilled)
      return undefined;
    const expected = expectedUse(execution);
    const { askedTokens } = affordedBy(allowance.freeNano, candidate, expected);
    const mostTokens = (outputCap ?? askedTokens) * expected.choices;
    const stream = new StreamAllowance(
      { ...execution, allowance },
      { candidate, expected, mostTokens },
    );
    return stream.isWhole ? undefined : stream;
  }

  private get isWhole(): boolean {
    return this.allowance.heldNano >= this.mostNano;
  }

  /**
   * Returns whether an event may be passed on: the hold covers the output so far, or could be
   * raised to.
   */
  admits(relay: StreamProgress, data: string): boolean | Promise<boolean> {
    if (this.isWhole || relay.finished || !saysSomething(data)) return true;
    const wide = data.match(wideCharacter)?.length ?? 0;
    this.wideCharacters += wide;
    const said = Math.max(
      totalOutputTokens(relay.metered().usage),
      tokensOf(relay.outputCharacters + 2 * this.wideCharacters),
    );
    const tokens = said + (holdsMedia(data) ? 1 : tokensOf(data.length + 2 * wide));
    return tokens <= this.coveredTokens || this.raise(tokens);
  }

  private raise(tokens: number): boolean | Promise<boolean> {
    if (this.pays(tokens)) return true;
    const ahead = this.costOf(tokens + stepTokens);
    const grown = this.ledger.grow(this.holdId, ahead < this.mostNano ? ahead : this.mostNano);
    const conclude = (heldNano: bigint): boolean => {
      this.allowance.heldNano = heldNano;
      return this.isWhole || this.pays(tokens);
    };
    return grown instanceof Promise ? grown.then(conclude) : conclude(grown);
  }

  private pays(tokens: number): boolean {
    if (this.costOf(tokens) > this.allowance.heldNano) return false;
    this.coveredTokens = tokens;
    return true;
  }
}

const tokensOf = (characters: number): number => Math.ceil(characters / charactersPerToken);
