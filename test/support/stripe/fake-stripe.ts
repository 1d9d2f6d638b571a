import { errorOf, type Answer } from "./fake-meters.ts";
import { found, StripeWorld, type StripeObject } from "./stripe-world.ts";

/**
 * What happens to the next request that charges a card or opens a checkout: the bank declines,
 * Stripe is down, or the request is executed and its answer lost.
 */
type StripeFault = "declined" | "down" | "answer-lost";

/** A request that the simulation received. */
interface StripeRequest {
  method: string;
  path: string;
  form: URLSearchParams;
  idempotencyKey: string | null;
  authorization: string | null;
}

/** A simulated Stripe on loopback, for the official library. */
export interface FakeStripe {
  world: StripeWorld;
  /** The URL on which it listens. */
  url: string;
  requests: StripeRequest[];
  nextFault: StripeFault | undefined;
  /** Called with the number of requests so far, once one was executed and before it is answered. */
  whenAsked(count: number): void;
  stop(): Promise<void>;
}

const ok = (body: unknown): Answer => ({ status: 200, body });
const listOf = (data: unknown[]): Answer => ok({ object: "list", data, has_more: false, url: "/" });

/**
 * Starts a simulated Stripe. Like the real one, it answers a repeated idempotency key as it
 * answered the first request.
 */
export function startFakeStripe(nowMs: () => number = () => Date.now()): FakeStripe {
  const world = new StripeWorld(nowMs);
  const answered = new Map<string, Answer>();
  const fake: FakeStripe = {
    world,
    url: "",
    requests: [],
    nextFault: undefined,
    whenAsked: () => undefined,
    stop: () => server.stop(true),
  };
  const answer = (request: StripeRequest): Answer => {
    // What Stripe knows of an identifier is tested too, which outlives the key.
    const key = request.path === "/billing/meter_events" ? null : request.idempotencyKey;
    const before = key === null ? undefined : answered.get(key);
    if (before !== undefined) return before;
    const given = handle(fake, request);
    if (key !== null && given.status !== 503) answered.set(key, given);
    return given;
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(incoming) {
      const { pathname, searchParams } = new URL(incoming.url);
      const form =
        incoming.method === "GET" ? searchParams : new URLSearchParams(await incoming.text());
      const request = {
        method: incoming.method,
        path: pathname.slice("/v1".length),
        form,
        idempotencyKey: incoming.headers.get("idempotency-key"),
        authorization: incoming.headers.get("authorization"),
      };
      fake.requests.push(request);
      const lost = fake.nextFault === "answer-lost" && request.method === "POST";
      if (lost) fake.nextFault = undefined;
      const { status, body } = answer(request);
      fake.whenAsked(fake.requests.length);
      return lost ? new Response("lost", { status: 500 }) : Response.json(body, { status });
    },
  });
  fake.url = `http://127.0.0.1:${server.port}`;
  return fake;
}

function handle(fake: FakeStripe, request: StripeRequest): Answer {
  const { world } = fake;
  const { form } = request;
  const [, kind = "", ...rest] = request.path.split("/");
  const ofCustomer = (objects: ReadonlyMap<string, StripeObject>): Answer =>
    listOf(
      [...objects.values()]
        .filter((object) => object["customer"] === form.get("customer"))
        .reverse(),
    );
  if (request.method === "POST") return create(fake, { kind: [kind, ...rest].join("/"), form });
  switch (kind) {
    case "customers":
      return listOf(cardsOf(world, rest[0] ?? ""));
    case "checkout":
      return rest[1] === undefined
        ? ofCustomer(world.sessions)
        : ok(found(world.sessions, rest[1]));
    case "payment_intents":
      return rest[0] === undefined
        ? ofCustomer(world.payments)
        : ok(found(world.payments, rest[0]));
    case "refunds":
      return listOf(
        [...world.refunds.values()].filter(
          (refund) => refund["payment_intent"] === form.get("payment_intent"),
        ),
      );
    case "events":
      return listOf(
        world.events.filter(({ created }) => created >= Number(form.get("created[gte]"))).reverse(),
      );
    default:
      return errorOf(404, { type: "invalid_request_error", message: `nothing at ${request.path}` });
  }
}

const cardsOf = (world: StripeWorld, customerId: string): unknown[] =>
  world.cards.has(customerId)
    ? [
        {
          id: `pm_of_${customerId}`,
          object: "payment_method",
          card: { brand: "visa", last4: "4242" },
        },
      ]
    : [];

function create(fake: FakeStripe, { kind, form }: { kind: string; form: URLSearchParams }): Answer {
  const { world } = fake;
  const fault = fake.nextFault;
  if (kind === "customers") {
    const id = world.id("cus");
    world.customers.set(id, {
      id,
      object: "customer",
      name: form.get("name"),
      email: form.get("email"),
    });
    return ok(world.customers.get(id));
  }
  fake.nextFault = undefined;
  if (fault === "down") return errorOf(503, { type: "api_error", message: "down" });
  if (kind === "billing/meter_events") return world.meters.take(form);
  return kind === "checkout/sessions"
    ? ok(openSession(world, form))
    : charge(world, { form, declined: fault === "declined" });
}

function metadataOf(form: URLSearchParams, prefix = "metadata"): Record<string, string> {
  const entries = [...form].filter(([name]) => name.startsWith(`${prefix}[`));
  return Object.fromEntries(
    entries.map(([name, value]) => [name.slice(prefix.length + 1, -1), value]),
  );
}

function openSession(world: StripeWorld, form: URLSearchParams): StripeObject {
  const amounts = [0, 1].map((index) =>
    Number(form.get(`line_items[${index}][price_data][unit_amount]`) ?? 0),
  );
  const id = world.id("cs");
  const session = {
    id,
    object: "checkout.session",
    client_reference_id: form.get("client_reference_id"),
    customer: form.get("customer"),
    amount_total: amounts.reduce((sum, amount) => sum + amount, 0),
    currency: form.get("line_items[0][price_data][currency]"),
    metadata: metadataOf(form),
    payment_status: "unpaid",
    status: "open",
    payment_intent: null,
    url: `https://checkout.example/${id}`,
    saves_card: form.get("payment_intent_data[setup_future_usage]") === "off_session",
    lines: amounts,
    success_url: form.get("success_url"),
    cancel_url: form.get("cancel_url"),
  };
  world.sessions.set(id, session);
  return session;
}

function charge(
  world: StripeWorld,
  { form, declined }: { form: URLSearchParams; declined: boolean },
): Answer {
  const fields = {
    amount: Number(form.get("amount")),
    currency: form.get("currency"),
    customer: form.get("customer"),
    metadata: metadataOf(form),
    payment_method: form.get("payment_method"),
  };
  if (!declined) {
    const payment = world.addPayment(fields, "succeeded");
    world.happen("payment_intent.succeeded", payment);
    return ok(payment);
  }
  const error = {
    type: "card_error",
    code: "card_declined",
    decline_code: "insufficient_funds",
    message: "Insufficient funds.",
  };
  const payment = world.addPayment(
    { ...fields, last_payment_error: error },
    "requires_payment_method",
  );
  world.happen("payment_intent.payment_failed", payment);
  return errorOf(402, { ...error, payment_intent: payment });
}
