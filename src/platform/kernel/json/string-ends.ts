/** The codes of the characters that end and escape in a string. */
export const [quote, backslash] = [0x22, 0x5c];

/** Finds the ends of strings in JSON text whose bytes arrive piece by piece. */
export class StringEnds {
  private isEscaped = false;

  /** Returns the position of the quote that ends the string, or the end of the piece. */
  endIn(bytes: Uint8Array, from: number): number {
    for (let at = from; ; ) {
      const found = bytes.indexOf(quote, at);
      const end = found < 0 ? bytes.length : found;
      let slashesFrom = end;
      while (slashesFrom > at && bytes[slashesFrom - 1] === backslash) slashesFrom -= 1;
      const isOdd = (end - slashesFrom) % 2 === 1;
      // A backslash at the end of the previous piece escapes the first character of this one.
      const isEscaped = slashesFrom === at && this.isEscaped ? !isOdd : isOdd;
      this.isEscaped = found < 0 && isEscaped;
      if (found < 0) return end;
      if (!isEscaped) return found;
      at = found + 1;
    }
  }
}
