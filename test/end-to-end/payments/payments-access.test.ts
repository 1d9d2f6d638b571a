import { afterEach, expect, test } from "bun:test";
import { startFakeStripe, type FakeStripe } from "../../support/stripe/fake-stripe.ts";
import { paymentSettings, signed } from "../../support/stripe/paying-gateway.ts";
import { at, textAt } from "../api/at.ts";
import { startPeopled, type Browser, type PeopledGateway } from "../api/people-browser.ts";
import { startTwoWorkspaces } from "../api/two-workspaces.ts";

let stripe: FakeStripe;
let stop: () => Promise<void>;
afterEach(async () => {
  await stop();
  await stripe.stop();
});

const sessionOf = (topUp: unknown): string =>
  textAt(topUp, "url").slice("https://checkout.example/".length);

/** Has Stripe tell that a checkout was paid. */
async function tellPaid(baseUrl: string, topUp: unknown): Promise<void> {
  const body = JSON.stringify(stripe.world.pay(sessionOf(topUp))[0]);
  const response = await fetch(`${baseUrl}/webhooks/stripe`, {
    method: "POST",
    body,
    headers: signed(body, { atMs: Date.now() }),
  });
  expect(response.status).toBe(200);
}

async function peopled(): Promise<PeopledGateway> {
  stripe = startFakeStripe();
  const people = await startPeopled(undefined, { payments: paymentSettings(stripe.url) });
  stop = () => people.stop();
  return people;
}

test("an owner's session can buy, with their address on the invoice, but not from another site", async () => {
  const { owner, gateway } = await peopled();
  const topUp = await owner.json("POST", "/credits/top-ups", {
    amount: 10,
    return_url: "http://127.0.0.1/billing",
  });
  expect(at(topUp, "created_by")).toMatch(/^usr_/);
  const session = stripe.world.sessions.get(sessionOf(topUp));
  expect([session?.["success_url"], session?.["cancel_url"]]).toEqual([
    "http://127.0.0.1/billing",
    "http://127.0.0.1/billing",
  ]);
  expect([...stripe.world.customers.values()]).toMatchObject([{ email: "owner@example.com" }]);
  await tellPaid(gateway().baseUrl, topUp);
  expect(await (await owner.api("GET", "/credits/invoices/TEST-INV-000001")).text()).toContain(
    "owner@example.com",
  );
  owner.origin = "https://elsewhere.example";
  expect((await owner.api("POST", "/credits/top-ups", { amount: 10 })).status).toBe(403);
  expect(stripe.world.sessions.size).toBe(1);
});

test("members see purchases but cannot spend the organization's money", async () => {
  const { owner, invited } = await peopled();
  const organizationId = textAt(await owner.json("POST", "/organizations", { name: "Yard" }), "id");
  const member = await invited(organizationId, { email: "member@example.com", role: "member" });
  const enter = async (browser: Browser): Promise<void> => {
    const workspaces = at(await browser.json("GET", "/workspaces"), "data") as {
      id: string;
      organization_id?: string | null;
    }[];
    const own = workspaces.find((workspace) => workspace.organization_id === organizationId);
    await browser.json("PATCH", "/session", { workspace_id: own?.id });
  };
  await enter(member);
  for (const path of [
    "/credits/top-ups",
    "/credits/invoices",
    "/credits/automatic",
    "/credits/quote?amount=10",
  ]) {
    expect([path, (await member.api("GET", path)).status]).toEqual([path, 200]);
  }
  const agreement = { threshold: 1, amount: 10, monthly_limit: 100, consent: true };
  expect((await member.api("POST", "/credits/top-ups", { amount: 10 })).status).toBe(403);
  expect((await member.api("POST", "/credits/automatic", agreement)).status).toBe(403);
  expect((await member.api("DELETE", "/credits/automatic")).status).toBe(403);
  expect(stripe.world.sessions.size).toBe(0);
});

test("another workspace's payments are not visible", async () => {
  stripe = startFakeStripe();
  const two = await startTwoWorkspaces(async () => undefined, {
    payments: paymentSettings(stripe.url),
  });
  stop = () => two.stop();
  const topUp: unknown = await (await two.own("POST", "/credits/top-ups", { amount: 10 })).json();
  await tellPaid(two.gateway().baseUrl, topUp);
  const balance = async (ask: typeof two.own): Promise<unknown> =>
    at(await (await ask("GET", "/credits")).json(), "topup_balance");
  expect([await balance(two.own), await balance(two.stranger)]).toEqual([20, 0]);
  const paths = [`/credits/top-ups/${textAt(topUp, "id")}`, "/credits/invoices/TEST-INV-000001"];
  for (const path of paths) {
    expect([(await two.own("GET", path)).status, (await two.stranger("GET", path)).status]).toEqual(
      [200, 404],
    );
  }
  for (const path of ["/credits/top-ups", "/credits/invoices"]) {
    expect(at(await (await two.stranger("GET", path)).json(), "data")).toEqual([]);
  }
});
