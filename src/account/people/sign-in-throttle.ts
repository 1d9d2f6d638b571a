import type { Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { NamedWindows } from "../limits/named-windows.ts";

/** Attempts within fifteen minutes. The pair is what guessing meets; the others stop what is spread wide. */
const windowSeconds = 900;
const pairMax = 10;
const addressMax = 60;
const emailMax = 100;

const pairOf = (address: string, email: string): string => `pair ${address} ${email}`;

/**
 * Counts attempts to prove who one is, whatever comes of them: by address and e-mail together, so that a
 * stranger's guesses do not lock the owner out, and by each alone.
 */
export class SignInThrottle {
  private readonly windows: NamedWindows;

  constructor(clock: Clock) {
    this.windows = new NamedWindows(clock, { windowMs: windowSeconds * 1000, slotMs: 5_000 });
  }

  /** Throws `rate_limit_exceeded`; attempts without an e-mail, such as passkeys, count by address alone. */
  count({ address, email }: { address: string; email?: string }): void {
    const name = email?.trim().toLowerCase();
    this.admit(`address ${address}`, addressMax);
    if (name === undefined) return;
    this.admit(pairOf(address, name), pairMax);
    this.admit(`email ${name}`, emailMax);
  }

  /** Somebody proved who they are: their own attempts from there are no guesses. */
  succeeded({ address, email }: { address: string; email: string }): void {
    this.windows.forget(pairOf(address, email.trim().toLowerCase()));
  }

  private admit(name: string, limit: number): void {
    if (this.windows.tryAdd(name, { limit })) return;
    const retryAfterSeconds = Math.max(1, Math.ceil(this.windows.stateOf(name).oldestLeavesInMs / 1000));
    throw new GatewayError("rate_limit_exceeded", "Too many attempts to sign in. Wait, and try again.", {
      retryAfterSeconds, metadata: { window_seconds: windowSeconds },
    });
  }
}
