import { afterEach, describe, expect, test } from "bun:test";
import { startPayingGateway, type PayingGateway } from "../../support/stripe/paying-gateway.ts";
import { at, listAt } from "../api/at.ts";
import { allEngines } from "../api/two-workspaces.ts";

let paying: PayingGateway;
afterEach(() => paying.stop());

/** Spends credits without a request. */
const spend = async (usd: number): Promise<void> => {
  const { ledger } = paying.gateway().app;
  const [workspaceId = ""] = ledger.book.workspaceIds();
  const holdId = crypto.randomUUID();
  await ledger.reserve({
    holdId,
    workspaceId,
    keyId: "key_test",
    keyLimit: null,
    ceilingNano: BigInt(Math.round(usd * 1e9)),
  });
  await ledger.post({
    holdId,
    amountNano: BigInt(Math.round(usd * 1e9)),
    alongside: () => ({ inserts: [], adds: [] }),
  }).durable;
};

const documents = async (): Promise<unknown[]> =>
  listAt(await paying.json("GET", "/credits/invoices"), "data");

describe.each(allEngines)("refunds and disputes on %s", (_, freshUrl) => {
  test("refunds deduct credits in proportion, once, each with a credit note, up to the full amount", async () => {
    paying = await startPayingGateway(await freshUrl());
    const { world } = paying.stripe;
    await paying.topUp(5);
    const { paymentId, orderId } = await paying.topUp(10);
    expect(await paying.balance()).toBe(15);
    const [half, charge] = world.refund(paymentId, 550);
    expect([
      await paying.deliver(half!),
      await paying.deliver(half!),
      await paying.deliver({ ...half!, id: "evt_again" }),
    ]).toEqual(["noted", "already", "already"]);
    expect(await paying.balance()).toBe(10);
    expect(await paying.deliver(charge!)).toBe("noted");
    expect(await paying.balance()).toBe(10);
    // A third of a cent: what is left over is settled with the last of them.
    for (const cents of [100, 100, 350])
      for (const event of world.refund(paymentId, cents)) await paying.deliver(event);
    expect(await paying.balance()).toBe(5);
    const notes = (await documents())
      .filter((each) => at(each, "object") === "credit_note")
      .reverse();
    expect(
      notes.map((each) => [
        at(each, "id"),
        at(each, "top_up_id"),
        at(each, "amount"),
        at(each, "fee"),
        at(each, "total"),
      ]),
    ).toEqual([
      ["TEST-CN-000001", orderId, 5, 0.5, 5.5],
      ["TEST-CN-000002", orderId, 0.91, 0.09, 1],
      ["TEST-CN-000003", orderId, 0.91, 0.09, 1],
      ["TEST-CN-000004", orderId, 3.18, 0.32, 3.5],
    ]);
    await paying.restart();
    expect(await paying.balance()).toBe(5);
  });

  test("a dispute deducts credits at once, a won one returns them, and repeated events change nothing", async () => {
    paying = await startPayingGateway(await freshUrl());
    const { world } = paying.stripe;
    const [lost, won] = [await paying.topUp(10), await paying.topUp(20)];
    const inquiry = world.dispute(won.paymentId, {
      amount: 2_150,
      status: "warning_needs_response",
    });
    expect(await paying.deliver(inquiry)).toBe("ignored");
    expect(await paying.balance()).toBe(30);
    const escalated = world.moveDispute(String(inquiry.data.object.id), "needs_response");
    const opened = world.dispute(lost.paymentId, { amount: 1_100 });
    expect([await paying.deliver(escalated), await paying.balance()]).toEqual(["noted", 10]);
    expect([await paying.deliver(opened), await paying.balance()]).toEqual(["noted", 0]);
    const ends = [
      world.moveDispute(String(opened.data.object.id), "lost"),
      world.moveDispute(String(inquiry.data.object.id), "won"),
    ];
    for (const event of [...ends, ...ends, escalated, opened])
      await paying.deliver({ ...event, id: crypto.randomUUID() });
    expect(await paying.balance()).toBe(20);
    await paying.restart();
    expect(await paying.balance()).toBe(20);
  });
});

test("a refund and a dispute of one payment never deduct more than it added", async () => {
  paying = await startPayingGateway(undefined);
  const { world } = paying.stripe;
  await paying.topUp(50);
  const { paymentId } = await paying.topUp(10);
  const dispute = world.dispute(paymentId, { amount: 1_100 });
  for (const event of [...world.refund(paymentId, 1_100), dispute]) await paying.deliver(event);
  expect(await paying.balance()).toBe(50);
  // The dispute is won, since it was refunded: what the refund took stays taken.
  await paying.deliver(world.moveDispute(String(dispute.data.object.id), "won"));
  expect(await paying.balance()).toBe(50);
});

test("a failed refund returns the credits, and a second credit note cancels the first", async () => {
  paying = await startPayingGateway(undefined);
  const { world } = paying.stripe;
  const { paymentId } = await paying.topUp(10);
  const [refund] = world.refund(paymentId, 1_100);
  await paying.deliver(refund!);
  expect(await paying.balance()).toBe(0);
  const failed = world.failRefund(String(refund!.data.object.id));
  expect([await paying.deliver(failed), await paying.balance()]).toEqual(["noted", 10]);
  // The older news comes once more.
  await paying.deliver({ ...refund!, id: "evt_late" });
  expect(await paying.balance()).toBe(10);
  expect((await documents()).map((each) => [at(each, "id"), at(each, "total")])).toEqual(
    expect.arrayContaining([
      ["TEST-CN-000001", 11],
      ["TEST-CN-000002", -11],
    ]),
  );
});

test("a refund delivered before its payment deducts the credits as soon as they arrive", async () => {
  paying = await startPayingGateway(undefined);
  const { world } = paying.stripe;
  const { sessionId } = await paying.order(10);
  const [succeeded] = world.pay(sessionId);
  const [refund] = world.refund(String(succeeded!.data.object.id), 550);
  expect([await paying.deliver(refund!), await paying.balance()]).toEqual(["noted", 0]);
  expect([await paying.deliver(succeeded!), await paying.balance()]).toEqual(["credited", 5]);
  expect((await documents()).map((each) => at(each, "id"))).toEqual(
    expect.arrayContaining(["TEST-INV-000001", "TEST-CN-000001"]),
  );
});

test("spent credits are deducted from later top-ups, never below zero", async () => {
  paying = await startPayingGateway(undefined);
  const { world } = paying.stripe;
  const { paymentId } = await paying.topUp(10);
  await spend(7);
  const [refund] = world.refund(paymentId, 1_100);
  await paying.deliver(refund!);
  expect(await paying.balance()).toBe(0);
  await paying.payments().follower.run();
  expect(await paying.balance()).toBe(0);
  await paying.topUp(5);
  expect(await paying.balance()).toBe(0);
  await paying.restart();
  await paying.topUp(5);
  expect(await paying.balance()).toBe(3);
});

test("held credits are deducted once the request ends", async () => {
  paying = await startPayingGateway(undefined);
  const { ledger } = paying.gateway().app;
  const { paymentId } = await paying.topUp(10);
  const [workspaceId = ""] = ledger.book.workspaceIds();
  await ledger.reserve({
    holdId: "gen_1",
    workspaceId,
    keyId: "key_test",
    keyLimit: null,
    ceilingNano: 4_000_000_000n,
  });
  const [refund] = paying.stripe.world.refund(paymentId, 1_100);
  await paying.deliver(refund!);
  expect(await paying.balance()).toBe(4);
  ledger.void("gen_1");
  await paying.payments().rounds.run(false);
  expect(await paying.balance()).toBe(0);
});

test("invoices and credit notes are printable pages of their own workspace only", async () => {
  paying = await startPayingGateway(undefined);
  const { paymentId, orderId } = await paying.topUp(10);
  await paying.deliver(paying.stripe.world.refund(paymentId, 1_100)[0]!);
  const invoice = await paying.ask("GET", "/credits/invoices/TEST-INV-000001");
  expect(invoice.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(invoice.headers.get("content-security-policy")).toContain("default-src 'none'");
  const text = await invoice.text();
  for (const part of [
    "<h1>Invoice TEST-INV-000001</h1>",
    "2026-11-21",
    "Switch &amp; Sons",
    "Trackville",
    "Tax id DE 123",
    "No tax is charged.",
    "10.00 USD",
    "1.00 USD",
    "11.00 USD",
    orderId,
    "Test mode",
  ])
    expect(text).toContain(part);
  const note = await (await paying.ask("GET", "/credits/invoices/TEST-CN-000001")).text();
  for (const part of [
    "<h1>Credit note TEST-CN-000001</h1>",
    "Corrects invoice TEST-INV-000001",
    "11.00 USD",
  ])
    expect(note).toContain(part);
  for (const id of ["TEST-INV-000002", "INV-000001", "TEST-INV-1", "%2e%2e", "CN-000001"]) {
    expect((await paying.ask("GET", `/credits/invoices/${id}`)).status).toBe(404);
  }
});
