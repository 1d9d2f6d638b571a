import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testManagementKey } from "../../support/gateway.ts";
import { migratedDatabase } from "../../support/postgres.ts";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import { hasRedis, redisMissing, startRedis, type RedisServer } from "../../support/redis.ts";
import { signed, webhookSecret } from "../../support/stripe/paying-gateway.ts";
import { StripeWorld, type StripeEvent } from "../../support/stripe/stripe-world.ts";
import { at } from "../api/at.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { queryDatabase } from "../process/support/query-database.ts";

async function deliver({ url }: GatewayProcess, event: StripeEvent): Promise<unknown> {
  const body = JSON.stringify(event);
  const headers = signed(body, { atMs: Date.now() });
  const response = await fetch(`${url}/api/v1/webhooks/stripe`, { method: "POST", body, headers });
  return at(await response.json(), "outcome");
}

describe.skipIf(!hasRedis)(`two gateways on one Postgres and one Valkey${redisMissing}`, () => {
  const world = new StripeWorld(() => Date.now());
  let redis: RedisServer;
  let databaseUrl: string;
  let gateways: GatewayProcess[];
  beforeAll(async () => {
    [redis, databaseUrl] = await Promise.all([startRedis(), migratedDatabase()]);
    const environment = {
      ...bootstrapVariables,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redis.url,
      STRIPE_SECRET_KEY: "sk_test_of_the_tests",
      STRIPE_WEBHOOK_SECRET: webhookSecret,
      STRIPE_API_BASE: "http://127.0.0.1:1",
      SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
    };
    gateways = await Promise.all([startProcess({ environment }), startProcess({ environment })]);
  }, 240_000);
  afterAll(async () => {
    await endProcesses();
    await redis.kill();
  });

  const get = async ({ url }: GatewayProcess, path: string): Promise<unknown> =>
    (
      await fetch(`${url}/api/v1${path}`, {
        headers: { authorization: `Bearer ${testManagementKey}` },
      })
    ).json();

  /** An order of 20 USD that was opened at Stripe. */
  async function order(id: string): Promise<StripeEvent[]> {
    await queryDatabase(
      databaseUrl,
      `insert into payment_orders (id, workspace_id, live, kind, state, created_at_ms, created_by, buyer,
      credit_cents, fee_cents, currency, customer_id, session_id)
      select '${id}', id, 0, 'checkout', 'open', 1, 'usr', '{"name":"a"}', 2000, 150, 'usd', 'cus_1', 'cs_${id}' from workspaces`,
    );
    world.sessions.set(`cs_${id}`, {
      id: `cs_${id}`,
      client_reference_id: id,
      customer: "cus_1",
      amount_total: 2_150,
      currency: "usd",
      payment_status: "unpaid",
      metadata: { switchyard_order: id },
    });
    return world.pay(`cs_${id}`);
  }

  const balances = (): Promise<unknown[]> =>
    Promise.all(gateways.map(async (gateway) => at(await get(gateway, "/credits"), "balance")));

  test("a payment delivered to both in parallel is credited once, at both", async () => {
    for (let count = 1; count <= 5; count++) {
      const events = await order(`top_${count}`);
      const outcomes = await Promise.all(
        gateways.flatMap((gateway) => events.map((event) => deliver(gateway, event))),
      );
      expect(outcomes.sort()).toEqual(["already", "already", "already", "credited"]);
      expect(await balances()).toEqual([10 + 20 * count, 10 + 20 * count]);
    }
    const { data } = (await get(gateways[1]!, "/credits/invoices")) as { data: { id: string }[] };
    expect(data.map(({ id }) => id).sort()).toEqual(
      [1, 2, 3, 4, 5].map((number) => `TEST-INV-00000${number}`),
    );
  }, 240_000);

  test("a refund delivered to both in parallel is deducted once, at both", async () => {
    const [succeeded] = await order("top_refunded");
    await deliver(gateways[0]!, succeeded!);
    const [before] = (await balances()) as number[];
    const [refund] = world.refund(succeeded!.data.object.id, 1_075);
    await Promise.all(gateways.map((gateway) => deliver(gateway, refund!)));
    for (const gateway of gateways)
      expect(["noted", "already"]).toContain((await deliver(gateway, refund!)) as string);
    expect(await balances()).toEqual([before! - 10, before! - 10]);
  }, 240_000);
});
