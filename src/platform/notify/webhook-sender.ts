import { createHmac } from "node:crypto";
import { brandHeader } from "../kernel/brand.ts";
import type { Clock } from "../kernel/clock.ts";
import {
  type AddressGuard,
  UnsafeTargetError,
  guardedFetch,
  resolveTarget,
} from "./public-address.ts";

/** A message to a caller's webhook. */
export interface WebhookMessage {
  /**
   * The id of the delivery; the same for every attempt, so that a receiver recognises repetitions.
   */
  id: string;
  url: string;
  secret: string;
  /** The event, such as `budget.threshold_reached`. */
  event: string;
  /** JSON. */
  body: string;
}

/**
 * The outcome of one attempt. Its texts never quote the receiver's answer, which would let the
 * author of the URL read a network.
 */
export type DeliveryOutcome =
  | { ok: true; status: number | null }
  | { ok: false; status: number | null; error: string };

/** Milliseconds that a webhook may take to answer. */
const patienceMs = 10_000;

/**
 * Sends signed messages to callers' webhooks: over TLS, to public addresses, without following
 * redirects.
 */
export class WebhookSender {
  private readonly guard: AddressGuard;
  private readonly clock: Clock;

  constructor(options: { guard: AddressGuard; clock: Clock }) {
    this.guard = options.guard;
    this.clock = options.clock;
  }

  /** Throws `UnsafeTargetError` for a URL that would not be called now. */
  async check(url: string): Promise<void> {
    await resolveTarget(url, this.guard);
  }

  /** Sends once. Never throws: returns what went wrong. */
  async send({ id, url, secret, event, body }: WebhookMessage): Promise<DeliveryOutcome> {
    try {
      const response = await guardedFetch(
        url,
        {
          method: "POST",
          body,
          signal: AbortSignal.timeout(patienceMs),
          headers: {
            "content-type": "application/json",
            [brandHeader("Event")]: event,
            [brandHeader("Delivery")]: id,
            [brandHeader("Signature")]: signatureOf({ secret, body, nowMs: this.clock.nowMs() }),
          },
        },
        this.guard,
      );
      await response.body?.cancel();
      const { status } = response;
      return response.ok
        ? { ok: true, status }
        : { ok: false, status, error: `The webhook answered ${status}.` };
    } catch (error) {
      return { ok: false, status: null, error: reasonOf(error) };
    }
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof UnsafeTargetError) return `The webhook's URL ${error.message}.`;
  if (error instanceof Error && error.name === "TimeoutError")
    return `The webhook did not answer within ${patienceMs / 1000} seconds.`;
  return "The webhook could not be reached.";
}

/**
 * Returns the signature header of a body: `t` is the time in seconds, `v1` the HMAC-SHA256 of
 * `<t>.<body>` in hexadecimal.
 */
export const signatureOf = ({
  secret,
  body,
  nowMs,
}: {
  secret: string;
  body: string;
  nowMs: number;
}): string => {
  const seconds = Math.floor(nowMs / 1000);
  return `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`;
};
