import { afterAll, afterEach, expect, test } from "bun:test";
import { testManagementKey } from "../../support/gateway.ts";
import {
  endProcesses,
  runProcess,
  startProcess,
  temporaryDirectory,
  type GatewayProcess,
} from "../../support/process.ts";
import { startFakeStripe, type FakeStripe } from "../../support/stripe/fake-stripe.ts";
import { signed, webhookSecret } from "../../support/stripe/paying-gateway.ts";
import type { StripeEvent } from "../../support/stripe/stripe-world.ts";
import { at, textAt } from "../api/at.ts";

let stripe: FakeStripe | undefined;
afterEach(async () => {
  await stripe?.stop();
  stripe = undefined;
});
afterAll(endProcesses);

const ask = async (
  { url }: GatewayProcess,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> => {
  const response = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${testManagementKey}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return response.json();
};

const deliver = ({ url }: GatewayProcess, event: StripeEvent): Promise<Response> => {
  const body = JSON.stringify(event);
  return fetch(`${url}/api/v1/webhooks/stripe`, {
    method: "POST",
    body,
    headers: signed(body, { atMs: Date.now() }),
  });
};

test("a gateway killed during a delivery credits it once on the next one", async () => {
  stripe = startFakeStripe();
  const start = (): Promise<GatewayProcess> =>
    startProcess({
      dataDirectory,
      yaml: "payments:\n  fee: { percent: 2.5, fixed: 0.10 }\n  top_up: { min: 1 }\n",
      environment: {
        STRIPE_SECRET_KEY: "sk_test_of_the_tests",
        STRIPE_WEBHOOK_SECRET: webhookSecret,
        STRIPE_API_BASE: stripe?.url ?? "",
        SWITCHYARD_BOOTSTRAP_MANAGEMENT_KEY: testManagementKey,
      },
    });
  const dataDirectory = temporaryDirectory();
  let gateway = await start();
  expect(await ask(gateway, "GET", "/credits/quote?amount=10")).toMatchObject({
    fee: 0.35,
    total: 10.35,
  });
  for (let count = 1; count <= 4; count++) {
    const topUp = await ask(gateway, "POST", "/credits/top-ups", { amount: 1 });
    const [succeeded, completed] = stripe.world.pay(
      textAt(topUp, "url").slice("https://checkout.example/".length),
    );
    // Killed with the answer on its way, before it or after it, as it happens.
    const underWay = [deliver(gateway, succeeded!), deliver(gateway, completed!)].map((each) =>
      each.catch(() => undefined),
    );
    if (count % 2 === 0) await Promise.race(underWay);
    await gateway.kill9();
    await Promise.all(underWay);
    gateway = await start();
    for (const event of [succeeded!, completed!])
      expect((await deliver(gateway, event)).status).toBe(200);
    expect(at(await ask(gateway, "GET", "/credits"), "balance")).toBe(count);
  }
  expect(at(await ask(gateway, "GET", "/credits/invoices"), "data.0.id")).toBe("TEST-INV-000004");
  expect(await gateway.terminate()).toBe(0);
}, 240_000);

test("invalid keys and settings stop the start and are named with their lines, without their values", async () => {
  const { exitCode, stderr } = await runProcess({
    yaml: "payments:\n  stripe:\n    secret_key: pk_test_public\n  fee: { percent: 5.001 }\n  top_up:\n    minimum: 5\n",
    environment: { STRIPE_WEBHOOK_SECRET: "hunter2" },
  });
  expect(exitCode).toBe(1);
  for (const line of [
    /switchyard\.yaml:3 payments\.stripe\.secret_key: expected a secret key of Stripe/,
    /switchyard\.yaml:4 payments\.fee\.percent: expected a percentage from 0 to 50, with two decimals at most, got 5\.001/,
    /switchyard\.yaml:6 payments\.top_up\.minimum: unknown key/,
    /STRIPE_WEBHOOK_SECRET: expected the secret of a webhook endpoint of Stripe: whsec_/,
  ])
    expect(stderr).toMatch(line);
  for (const secret of ["pk_test_public", "hunter2"]) expect(stderr).not.toContain(secret);
});
