import { brandHeader } from "../../platform/lib/brand.ts";
import type { Clock } from "../../platform/lib/clock.ts";
import { guardedFetch } from "./guarded-fetch.ts";
import { resolveTarget, UnsafeTargetError, type AddressGuard } from "./public-address.ts";
import { signatureOf } from "./webhook-secret.ts";

/** What is sent to somebody's webhook. */
export interface WebhookMessage {
  /** Id of the delivery; the same for every try, so that a receiver can tell repetitions. */
  id: string;
  url: string;
  secret: string;
  /** What it tells, such as `budget.threshold_reached`. */
  event: string;
  /** JSON. */
  body: string;
}

/** What became of one try. The words never quote what the other side said: who wrote the URL could read a network with them. */
export type DeliveryOutcome =
  | { ok: true; status: number | null }
  | { ok: false; status: number | null; error: string };

/** Longer than this nobody's webhook is waited for. */
const patienceMs = 10_000;

/** Sends signed messages to callers' webhooks: over TLS, to public addresses, without following redirects. */
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

  /** Sends once. Never throws: what went wrong is told. */
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
