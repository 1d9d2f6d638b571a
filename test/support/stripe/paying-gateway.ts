import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PaymentSettings } from "../../../src/billing/payments/cents.ts";
import type { Payments } from "../../../src/billing/payments/open-payments.ts";
import type { AppSettings } from "../../../src/app/settings-of.ts";
import { FakeClock } from "../fake-clock.ts";
import { startGateway, testManagementKey, type TestGateway } from "../gateway.ts";
import { putMigratedSqlite } from "../migrated-sqlite.ts";
import { startFakeStripe, type FakeStripe } from "./fake-stripe.ts";
import type { StripeEvent } from "./stripe-world.ts";

/** The secret of the tests' webhook endpoint. */
export const webhookSecret = "whsec_of_the_tests";

/** Returns settings for payments at a simulated Stripe. */
export const paymentSettings = (
  apiBase: string,
  changes: Partial<PaymentSettings> = {},
): PaymentSettings => ({
  stripe: { secretKey: "sk_test_of_the_tests", webhookSecret, apiBase },
  currency: "usd",
  fee: { basisPoints: 500, fixedCents: 50 },
  creditCentsMin: 500,
  creditCentsMax: 500_000,
  seller: {
    name: "Switch & Sons",
    address: ["1 Yard Lane", "Trackville"],
    taxId: "DE 123",
    taxNote: "No tax is charged.",
  },
  ...changes,
});

/**
 * Returns a body and its signature as Stripe sends them (docs.stripe.com/webhooks#verify-manually).
 */
export function signed(
  body: string,
  { secret = webhookSecret, atMs }: { secret?: string; atMs: number },
): Record<string, string> {
  const time = Math.floor(atMs / 1000);
  return {
    "stripe-signature": `t=${time},v1=${createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")}`,
  };
}

/** A gateway that takes card payments at a simulated Stripe. */
export interface PayingGateway {
  stripe: FakeStripe;
  clock: FakeClock;
  gateway(): TestGateway;
  payments(): Payments;
  /**
   * Calls the API with the management key of the first workspace; the test fails where the call is
   * refused.
   */
  json(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
  ask(method: string, path: string, body?: unknown): Promise<Response>;
  /** Sends an event to the webhook as Stripe does; returns its outcome. */
  deliver(event: StripeEvent): Promise<string>;
  /** Opens a checkout, and returns its order and its session at Stripe. */
  order(
    amount: number,
    fields?: Record<string, unknown>,
  ): Promise<{ orderId: string; sessionId: string }>;
  /** Opens a checkout, pays it and delivers its events; returns the order and the payment. */
  topUp(
    amount: number,
    fields?: Record<string, unknown>,
  ): Promise<{ orderId: string; paymentId: string }>;
  balance(): Promise<unknown>;
  /** Stops the gateway and starts another one on the same database. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a gateway on a database, SQLite unless a URL is given. Its balance is zero unless the
 * settings say otherwise.
 */
export async function startPayingGateway(
  storageUrl: string | undefined,
  {
    payments = {},
    ...changes
  }: Partial<Omit<AppSettings, "payments">> & { payments?: Partial<PaymentSettings> } = {},
): Promise<PayingGateway> {
  const clock = new FakeClock();
  const stripe = startFakeStripe(() => clock.nowMs());
  const directory = mkdtempSync(join(tmpdir(), "switchyard-payments-"));
  const settings = {
    storageUrl: storageUrl ?? (await putMigratedSqlite(directory)),
    payments: paymentSettings(stripe.url, payments),
    bootstrap: {
      llmKey: undefined,
      managementKey: testManagementKey,
      creditsNanoUsd: undefined,
      plan: "enterprise" as const,
    },
    ...changes,
  };
  let gateway = await startGateway(settings, { clock });
  const ask: PayingGateway["ask"] = (method, path, body) =>
    fetch(gateway.baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${testManagementKey}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const json: PayingGateway["json"] = async (method, path, body) => {
    const response = await ask(method, path, body);
    const answer = (await response.json()) as Record<string, unknown>;
    if (!response.ok)
      throw new Error(`${method} ${path} answered ${response.status}: ${JSON.stringify(answer)}`);
    return answer;
  };
  const deliver = async (event: StripeEvent): Promise<string> => {
    const body = JSON.stringify(event);
    const headers = signed(body, { atMs: clock.nowMs() });
    const response = await fetch(`${gateway.baseUrl}/webhooks/stripe`, {
      method: "POST",
      body,
      headers,
    });
    const answer = (await response.json()) as { outcome: string };
    if (!response.ok)
      throw new Error(`the webhook answered ${response.status}: ${JSON.stringify(answer)}`);
    return answer.outcome;
  };
  const order: PayingGateway["order"] = async (amount, fields = {}) => {
    const { id, url } = await json("POST", "/credits/top-ups", { amount, ...fields });
    return {
      orderId: String(id),
      sessionId: String(url).slice("https://checkout.example/".length),
    };
  };
  return {
    stripe,
    clock,
    ask,
    json,
    deliver,
    order,
    gateway: () => gateway,
    payments() {
      const { payments: open } = gateway.app;
      if (open === undefined) throw new Error("payments are off");
      return open;
    },
    async topUp(amount, fields) {
      const { orderId, sessionId } = await order(amount, fields);
      for (const event of stripe.world.pay(sessionId)) await deliver(event);
      return {
        orderId,
        paymentId: String(stripe.world.sessions.get(sessionId)?.["payment_intent"]),
      };
    },
    balance: async () => (await json("GET", "/credits"))["balance"],
    async restart() {
      await gateway.stop();
      gateway = await startGateway(settings, { clock });
    },
    async stop() {
      await gateway.stop();
      await stripe.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
