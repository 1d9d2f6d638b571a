import type { LedgerPort } from "../../../billing/ledger/ledger-port.ts";
import { totalOutputTokens } from "../../../platform/kernel/usage.ts";
import { holdsMedia, saysSomething, type StreamRelay } from "../../dialects/shared/passthrough.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { Execution } from "../execution.ts";
import { affordedBy, costOfTokens, isPaid, type ExpectedUse } from "./hold-ceiling.ts";
import type { Allowance } from "./hold-search.ts";
import { expectedUse } from "./expected-use.ts";

/** Tokens by which a hold grows ahead of the stream. */
const stepTokens = 4_096;

/**
 * The fewest characters that a token is assumed to have, for text that its provider has not counted
 * yet.
 */
const charactersPerToken = 3;

/** Matches characters that may be a token each: those beyond ASCII, literal or escaped. */
const wideCharacter = /[^\x00-\x7f]|\\u[0-9a-fA-F]{4}/g;

type StreamProgress = Pick<StreamRelay, "finished" | "outputCharacters" | "metered">;

/** A hold that grows ahead of its stream, for one candidate. */
export class StreamAllowance {
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
