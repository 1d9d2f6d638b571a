/** What stands in place of a byte of the credential. */
const hiddenByte = "*".charCodeAt(0);

/**
 * Hides a provider's credential in the pieces of an answer, since errors of providers may repeat
 * it. Pieces keep their length; the end of one that may be the beginning of the credential comes
 * with the next.
 */
export class HiddenCredential {
  private readonly secret: Buffer;
  private held = Buffer.alloc(0);

  constructor(secret: string) {
    this.secret = Buffer.from(secret);
  }

  /** Returns what can be sent of a piece and of those before it. */
  next(piece: Uint8Array): Uint8Array {
    const bytes = Buffer.concat([this.held, piece]);
    const { secret } = this;
    for (let at = bytes.indexOf(secret); at >= 0; at = bytes.indexOf(secret, at + secret.length))
      bytes.fill(hiddenByte, at, at + secret.length);
    const kept = this.beginningAtEnd(bytes);
    this.held = bytes.subarray(bytes.length - kept);
    return bytes.subarray(0, bytes.length - kept);
  }

  /** Returns what was held back, which nothing followed. */
  end(): Uint8Array {
    return this.held;
  }

  /** Returns the length of the longest end of the bytes with which the credential begins. */
  private beginningAtEnd(bytes: Buffer): number {
    const { secret } = this;
    for (let length = Math.min(secret.length - 1, bytes.length); length > 0; length -= 1)
      if (bytes.subarray(bytes.length - length).equals(secret.subarray(0, length))) return length;
    return 0;
  }
}
