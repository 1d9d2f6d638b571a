import type { LedgerPort } from "../account/ledger/ledger-port.ts";
import { totalOutputTokens } from "./canonical/usage.ts";
import type { Execution } from "./execution.ts";
import { affordedBy, costOfTokens, isPaid, type ExpectedUse } from "./hold-ceiling.ts";
import type { StreamRelay } from "./interpret/interpretation.ts";
import type { Candidate } from "./routing/candidate.ts";
import { expectedUse, type Allowance } from "./take-hold.ts";
import type { EventReader } from "./upstream/event-reader.ts";
import type { UpstreamResponse } from "./upstream/upstream-client.ts";

/** Tokens that a hold grows ahead of what has come. */
const stepTokens = 4_096;

/** Characters that make a token at the least where text is counted before its provider has counted it. */
const charactersPerToken = 3;

/** Characters that are as likely a token each: those of scripts beyond ASCII, as they are or escaped. */
const wideCharacter = /[^\x00-\x7f]|\\u[0-9a-fA-F]{4}/g;

/** Events that say something, in all dialects; those that repeat what was said have neither member. */
const isSaying = (data: string): boolean =>
  data.includes('"delta"') || data.includes('"candidates"');

/** Pictures and sound are long, and say nothing of how many tokens they are. */
const holdsMedia = (data: string): boolean =>
  data.length > 4_096 && /"(?:images?|audio|inlineData|image_url)"/.test(data);

type Speaking = Pick<StreamRelay, "finished" | "outputCharacters" | "metered">;

/** A hold that grows ahead of its stream, for one candidate. */
export class StreamAllowance {
  private readonly ledger: Pick<LedgerPort, "grow">;
  private readonly holdId: string;
  private readonly allowance: Allowance;
  private readonly costOf: (tokens: number) => bigint;
  /** What the stream costs at the cap that its provider was given: beyond that nothing has to be held. */
  private readonly mostNano: bigint;
  private wideCharacters = 0;
  /** Tokens of output that the hold is known to pay. */
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

  /** The allowance of a stream whose hold has to grow; undefined where what is held pays for all that can come. */
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

  /** The frames of the next event where it is paid for; otherwise its upstream is left, and they end the answer at its limit. */
  next({
    reader,
    relay,
    response,
  }: {
    reader: EventReader;
    relay: StreamRelay;
    response: Pick<UpstreamResponse, "abort">;
  }): string | Promise<string> | undefined {
    const event = reader.next();
    if (event === undefined) return undefined;
    const pass = (isBorne: boolean): string | Promise<string> => {
      if (isBorne) return relay.accept(event);
      response.abort();
      return relay.endAtCap();
    };
    const admitted = this.admits(relay, event.data);
    return admitted instanceof Promise ? admitted.then(pass) : pass(admitted);
  }

  /** Whether an event may be passed on: the hold pays for what was said with it, or could be raised as far. */
  private admits(relay: Speaking, data: string): boolean | Promise<boolean> {
    if (this.isWhole || relay.finished || !isSaying(data)) return true;
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
