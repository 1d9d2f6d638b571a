import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../kernel/clock.ts";
import { parseRange } from "../kernel/network/address-range.ts";
import { WebhookSender, signatureOf } from "./webhook-sender.ts";

let host: string | null = null;
const receiver = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    host = request.headers.get("host");
    return new Response("ok");
  },
});
afterAll(() => receiver.stop(true));

/** Names that lead to loopback first and elsewhere afterwards, as a rebinding name does. */
function senderWith(...answers: string[][]): { sender: WebhookSender; asked: () => number } {
  let asked = 0;
  const resolve = async (): Promise<string[]> =>
    answers[Math.min(asked++, answers.length - 1)] ?? [];
  const allowed = [parseRange("127.0.0.0/8")].flatMap((range) => range ?? []);
  return {
    sender: new WebhookSender({ guard: { allowed, resolve }, clock: systemClock }),
    asked: () => asked,
  };
}

const message = (url: string) => ({
  id: "dlv_1",
  url,
  secret: "whsec_x",
  event: "budget.threshold_reached",
  body: "{}",
});

test("a webhook is sent to the checked address with the original host, after one DNS lookup", async () => {
  const { sender, asked } = senderWith(["127.0.0.1"], ["10.0.0.1"]);
  const url = `http://hooks.example.test:${receiver.port}/x`;
  expect(await sender.send(message(url))).toEqual({ ok: true, status: 200 });
  expect([host, asked()]).toEqual([`hooks.example.test:${receiver.port}`, 1]);
});

test("a name that resolves to a private address receives nothing", async () => {
  const { sender } = senderWith(["10.0.0.1"]);
  const outcome = await sender.send(message("https://hooks.example.test/x"));
  expect(outcome).toEqual({
    ok: false,
    status: null,
    error: "The webhook's URL must not lead into a private network.",
  });
});

test("a connection failure is reported without details of the network", async () => {
  const { sender } = senderWith(["127.0.0.1"]);
  const outcome = await sender.send(message(`https://hooks.example.test:${receiver.port}/x`));
  expect(outcome).toEqual({ ok: false, status: null, error: "The webhook could not be reached." });
});

test("a signature is the HMAC-SHA256 of the time and the body", () => {
  expect(signatureOf({ secret: "key", body: "The quick brown fox", nowMs: 1_000 })).toBe(
    `t=1,v1=${new Bun.CryptoHasher("sha256", "key").update("1.The quick brown fox").digest("hex")}`,
  );
});
