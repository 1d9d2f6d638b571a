import { beforeAll, describe, expect, test } from "bun:test";
import { RateLimiter } from "../../../src/access/rate-limiter.ts";
import { SharedRateLimiter } from "../../../src/access/shared-rate-limiter.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { LedgerProcess } from "../../support/ledger-process.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { sharedLedgerStage } from "../../support/shared-ledger-stage.ts";
import type { ReserveOutcome } from "../../../src/billing/ledger/hold-rule.ts";

const workspaceId = "ws_admissions";

/** @see `docs/decisions/0126-one-round-trip-before-the-provider.md` */
describe.skipIf(!hasRedis)(`holds that wait for rate windows${redisMissing}`, () => {
  const stage = sharedLedgerStage();
  let process: LedgerProcess;
  let windows: SharedRateLimiter;
  beforeAll(async () => {
    const clock = new FakeClock();
    windows = new SharedRateLimiter({
      shared: stage.shared,
      ownWindows: new RateLimiter(clock),
      clock,
    });
    process = new LedgerProcess({ ...stage, workspaceId, clock });
    await process.ledger.credit({
      id: "txn_admissions",
      workspaceId,
      bucket: "topup",
      amountNano: 1_000n,
      kind: "topup",
      reference: null,
    });
  });

  /** Counts a request in a window of two; rejects where that is full. */
  const count = async (counter: string, ticket: string): Promise<void> => {
    const tier = { id: "test", perMinute: 2 };
    const { admitted } = await windows.count({
      minutes: [{ counter, tier }],
      hours: undefined,
      workspaceId,
      ticket,
    });
    if (!admitted) throw new Error("the window is full");
  };

  const reserve = async (ticket: string, counted: Promise<void>): Promise<ReserveOutcome> => {
    counted.catch(() => undefined);
    return process.ledger.reserve({
      holdId: `gen_${ticket}`,
      workspaceId,
      keyId: "k",
      keyLimit: null,
      ceilingNano: 100n,
      admission: { ticket, counted },
    });
  };

  const free = async (...tickets: string[]): Promise<void> => {
    for (const ticket of tickets) process.ledger.void(`gen_${ticket}`);
    await process.untilTold();
  };

  const heldNano = async (): Promise<bigint> => (await process.look()).heldNano;

  test("window and hold are requested together, and a request that its window refuses is not held", async () => {
    const asked = ["a", "b", "c"].map((ticket) => reserve(ticket, count("narrow", ticket)));
    const [first, second, third] = await Promise.allSettled(asked);
    expect([first, second]).toMatchObject([{ value: { ok: true } }, { value: { ok: true } }]);
    expect(third).toMatchObject({ status: "rejected", reason: new Error("the window is full") });
    expect(await heldNano()).toBe(200n);
    await free("a", "b");
  });

  test("a hold for a request counted elsewhere waits for that count", async () => {
    const counted = Promise.withResolvers<void>();
    const reserving = reserve("elsewhere", counted.promise);
    expect(await heldNano()).toBe(0n);
    counted.resolve();
    expect(await reserving).toMatchObject({ ok: true, heldNano: 100n });
    await free("elsewhere");
  });

  test("one admission is valid for one hold", async () => {
    await count("wide", "once");
    expect(await reserve("once", Promise.resolve())).toMatchObject({ ok: true });
    await free("once");
    const refused = Promise.reject(new Error("the window is full"));
    expect(await reserve("once", refused).catch((error: Error) => error.message)).toBe(
      "the window is full",
    );
    expect(await heldNano()).toBe(0n);
  });
});
