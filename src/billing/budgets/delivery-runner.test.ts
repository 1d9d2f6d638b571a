import { expect, mock, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { DeliveryRunner } from "./delivery-runner.ts";

test("a message is not sent again to recipients that its budget names no more", async () => {
  const send = mock(async () => ({ ok: false, status: 500, error: "down" }));
  const tried = mock(async (..._outcome: unknown[]) => undefined);
  const due = ["https://old.example/", "https://new.example/"].map((target) => ({
    id: `dlv_${target}`,
    channel: "webhook",
    target,
    attempts: 1,
  }));
  const runner = new DeliveryRunner({
    budgets: {
      find: async () => ({
        emails: [],
        webhookUrl: "https://new.example/",
        period: "monthly",
        timeZone: null,
      }),
    },
    alerts: {
      due: async () => due,
      take: async () => true,
      find: async () => ({ limitNano: 1n, spentNano: 1n, periodStartMs: 0, atMs: 0 }),
      tried,
    },
    webhooks: { send },
    secrets: { secretOf: () => "" },
    mailer: undefined,
    clock: new FakeClock(),
    isMember: async () => true,
  } as unknown as ConstructorParameters<typeof DeliveryRunner>[0]);
  await runner.run();
  expect(send.mock.calls).toMatchObject([[{ url: "https://new.example/" }]]);
  expect(tried.mock.calls).toMatchObject([
    [due[0], { outcome: { ok: false }, nextAttemptMs: null }],
    [due[1], { outcome: { status: 500 }, nextAttemptMs: expect.any(Number) }],
  ]);
});
