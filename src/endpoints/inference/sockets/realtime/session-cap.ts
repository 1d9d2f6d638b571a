import { mostTokensOf } from "../../../../inference/surfaces/realtime/realtime-call.ts";

/** Returns a cap in tokens; undefined where it is no count, such as `inf`. */
const tokensOf = (cap: unknown): number | undefined =>
  Number.isSafeInteger(cap) && Number(cap) > 0 ? Number(cap) : undefined;

/**
 * The output cap of a session's responses. A higher one counts as soon as it is asked for; a lower one
 * once the provider has confirmed it, since it may refuse the settings.
 */
export class SessionCap {
  /** The cap; undefined where it is the model's. */
  tokens: number | undefined;

  /** Notes a cap that the client asks for. Returns whether responses may be longer than before. */
  asked(cap: unknown): boolean {
    if (cap === undefined || cap === null) return false;
    const { tokens } = this;
    const asked = tokensOf(cap);
    if (mostTokensOf(asked) > mostTokensOf(tokens)) this.tokens = asked;
    return this.isAbove(tokens);
  }

  /** Notes the cap that the provider has. Returns whether responses may be longer than before. */
  confirmed(cap: unknown): boolean {
    if (cap === undefined || cap === null) return false;
    const { tokens } = this;
    this.tokens = tokensOf(cap);
    return this.isAbove(tokens);
  }

  /** Returns whether responses may be longer than under an earlier cap. */
  isAbove(before: number | undefined): boolean {
    return mostTokensOf(this.tokens) > mostTokensOf(before);
  }
}
