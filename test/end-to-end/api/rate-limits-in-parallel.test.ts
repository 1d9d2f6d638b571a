import { expect, test } from "bun:test";
import { acme, startGateway } from "../../support/gateway.ts";
import { startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { bootstrapWith } from "./bootstrap-with.ts";
import { chatRequest } from "./chat-request.ts";

const connections = 64;

/** Sends requests over so many connections at a time, and counts the statuses of their answers. */
async function statusesOf(
  count: number,
  send: () => Promise<Response>,
): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  let left = count;
  const work = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const response = await send();
      await response.arrayBuffer();
      statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  return statuses;
}

test("a window of 600 admits 600 of 900 parallel requests, and no more reach the provider", async () => {
  const upstream = await startFaultUpstream();
  const gateway = await startGateway({
    bootstrap: bootstrapWith({ plan: "payg" }),
    providers: [acme(upstream.baseUrl)],
  });
  const statuses = await statusesOf(900, () => gateway.post("/chat/completions", chatRequest()));
  expect(statuses).toEqual({ 200: 600, 429: 300 });
  expect(upstream.requests).toHaveLength(600);
  expect(gateway.app.ledger.openHoldCount).toBe(0);
  await gateway.stop();
  upstream.stop();
}, 240_000);

test("behind a trusted proxy each client address has 300 requests, whatever else the header contains", async () => {
  const gateway = await startGateway({ trustProxy: ["127.0.0.0/8", "::1"] });
  const from = (forwarded: string) => () =>
    fetch(`${gateway.baseUrl}/models/count`, { headers: { "x-forwarded-for": forwarded } });
  let forged = 0;
  const [one, other] = await Promise.all([
    statusesOf(400, () => from(`10.0.0.${(forged += 1) % 250}, 203.0.113.7`)()),
    statusesOf(300, from("203.0.113.8")),
  ]);
  expect([one, other]).toEqual([{ 200: 300, 429: 100 }, { 200: 300 }]);
  await gateway.stop();
}, 240_000);
