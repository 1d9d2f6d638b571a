import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

/** What a link shows: the balance of a customer, until a wall time. */
export interface BalanceLink {
  customerId: string;
  /** The version of the customer's links; a higher one makes earlier links void. */
  version: number;
  expiresAtMs: number;
}

const tokenPattern = /^([0-9a-f]{32})\.(\d{1,9})\.(\d{1,14})\.([\w-]{43})$/;

/**
 * Signed links to customers' balances. Each holds what it shows, so that every gateway with the same
 * key opens it and nothing is stored.
 */
export class BalanceLinks {
  private readonly key: Uint8Array;

  constructor(encryptionKey: Uint8Array) {
    const info = "switchyard balance links v1";
    this.key = new Uint8Array(hkdfSync("sha256", encryptionKey, "", info, 32));
  }

  /** Returns the token of a link. */
  issue({ customerId, version, expiresAtMs }: BalanceLink): string {
    const text = `${customerId.slice("cust_".length)}.${version}.${expiresAtMs}`;
    return `${text}.${this.sign(text)}`;
  }

  /** Returns what a token shows, also after its end; undefined where it was not issued here. */
  open(token: string): BalanceLink | undefined {
    const [, id, version, expiresAtMs, signature] = tokenPattern.exec(token) ?? [];
    if (id === undefined || signature === undefined) return undefined;
    const expected = Buffer.from(this.sign(`${id}.${version}.${expiresAtMs}`));
    if (!timingSafeEqual(expected, Buffer.from(signature))) return undefined;
    return {
      customerId: `cust_${id}`,
      version: Number(version),
      expiresAtMs: Number(expiresAtMs),
    };
  }

  private sign(text: string): string {
    return createHmac("sha256", this.key).update(text).digest("base64url");
  }
}
