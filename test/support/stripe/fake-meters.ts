/** An answer with its status. */
export interface Answer {
  status: number;
  body: unknown;
}

/** Returns the answer of an error as Stripe writes it. */
export const errorOf = (status: number, error: Record<string, unknown>): Answer => ({
  status,
  body: { error },
});

const daySeconds = 24 * 60 * 60;

/** An event that a meter took. */
interface TakenEvent {
  identifier: string;
  customer: string;
  value: number;
  timestamp: number;
  takenSeconds: number;
}

const refusal = (message: string, param?: string): Answer =>
  errorOf(400, { type: "invalid_request_error", message, ...(param !== undefined && { param }) });

/**
 * The meters of a simulated Stripe, which refuse what Stripe refuses
 * (docs.stripe.com/api/billing/meter-event/create; the refusal of a known identifier has no code,
 * github.com/langfuse/langfuse/pull/16292).
 */
export class FakeMeters {
  /** The event names of active meters. */
  readonly names = new Set<string>(["usage"]);
  readonly events: TakenEvent[] = [];
  private readonly nowMs: () => number;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  /** Returns the sum of a customer's events. */
  sumOf(customer: string): number {
    return this.events
      .filter((event) => event.customer === customer)
      .reduce((sum, { value }) => sum + value, 0);
  }

  take(form: URLSearchParams): Answer {
    const nowSeconds = Math.floor(this.nowMs() / 1000);
    const name = form.get("event_name") ?? "";
    const identifier = form.get("identifier") ?? crypto.randomUUID();
    const timestamp = Number(form.get("timestamp") ?? nowSeconds);
    const value = form.get("payload[value]") ?? "";
    const customer = form.get("payload[stripe_customer_id]") ?? "";
    if (name.length > 100 || !this.names.has(name))
      return refusal(`No active meter found for event name ${name}`, "event_name");
    if (identifier.length > 100) return refusal("Invalid string: at most 100", "identifier");
    if (timestamp < nowSeconds - 35 * daySeconds)
      return refusal("The timestamp must be within the past 35 days.", "timestamp");
    if (timestamp > nowSeconds + 300)
      return refusal("The timestamp must not be in the future.", "timestamp");
    if (!/^\d+$/.test(value)) return refusal("The value must be a whole number.", "payload[value]");
    if (!/^cus_\w+$/.test(customer))
      return refusal("No such customer.", "payload[stripe_customer_id]");
    const isKnown = this.events.some(
      (event) => event.identifier === identifier && event.takenSeconds > nowSeconds - daySeconds,
    );
    if (isKnown) return refusal(`An event already exists with identifier ${identifier}.`);
    this.events.push({
      identifier,
      customer,
      value: Number(value),
      timestamp,
      takenSeconds: nowSeconds,
    });
    return {
      status: 200,
      body: {
        object: "billing.meter_event",
        created: nowSeconds,
        event_name: name,
        identifier,
        livemode: false,
        payload: { stripe_customer_id: customer, value },
        timestamp,
      },
    };
  }
}
