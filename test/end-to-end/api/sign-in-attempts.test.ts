import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../../support/fake-clock.ts";
import { migratedDatabase } from "../../support/postgres.ts";
import { freshRedis, hasRedis } from "../../support/redis.ts";
import { at, listAt } from "./at.ts";
import {
  Browser,
  ownersPassword,
  publicOrigin,
  startPeopled,
  type PeopledGateway,
} from "./people-browser.ts";
import { startGateway } from "../../support/gateway.ts";
import { allEngines } from "./two-workspaces.ts";

const email = "owner@example.com";
const trusting = { trustProxy: true } as const;

const from = (browser: Browser, address: string): Browser => {
  browser.headers = { "x-forwarded-for": address };
  return browser;
};

describe.each(allEngines)("sign-in attempts on %s", (_, freshUrl) => {
  const clock = new FakeClock(Date.now());
  let peopled: PeopledGateway;
  beforeAll(async () => {
    peopled = await startPeopled(await freshUrl(), trusting, { clock });
  });
  afterAll(() => peopled.stop());

  const attempt = async (address: string, password = "guess guess guess"): Promise<number> => {
    clock.advance(1);
    return (await from(peopled.stranger(), address).signIn(email, password)).status;
  };

  test("from one IPv6 network count together, and other networks are counted separately", async () => {
    const statuses: number[] = [];
    for (let host = 1; host <= 11; host += 1)
      statuses.push(await attempt(`2001:db8:1:1:${host}::${host}`));
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429]);
    expect(await attempt("2001:db8:1:2::1", ownersPassword)).toBe(200);
  });

  test("from elsewhere do not block the owner on a known browser or network", async () => {
    clock.advance(1_000_000);
    const [known, atHome] = [from(peopled.stranger(), "192.0.2.10"), "192.0.2.77"];
    expect((await known.signIn(email, ownersPassword)).status).toBe(200);
    expect(await attempt(atHome, ownersPassword)).toBe(200);
    const statuses: number[] = [];
    for (let network = 0; network < 11; network += 1) {
      for (let tries = 0; tries < 10; tries += 1)
        statuses.push(await attempt(`2001:db8:2:${network}::1`));
    }
    // The owner's own two count as well: they had not signed in from there before.
    expect(statuses.filter((status) => status === 401)).toHaveLength(98);
    expect(statuses.slice(100)).toEqual(Array<number>(10).fill(429));
    expect((await from(known, "198.51.100.99").signIn(email, ownersPassword)).status).toBe(200);
    expect(await attempt(atHome, ownersPassword)).toBe(200);
    // A cookie that a stranger made up, or that is another account's, opens nothing.
    const forged = from(peopled.stranger(), "2001:db8:2:99::1");
    forged.cookies.set("switchyard.device", `${"a".repeat(22)}.${"b".repeat(43)}`);
    expect((await forged.signIn(email, ownersPassword)).status).toBe(429);
    // A known browser is no way to go on guessing either.
    const guesses: number[] = [];
    for (let tries = 0; tries < 11; tries += 1)
      guesses.push((await from(known, "198.51.100.99").signIn(email, "guess guess")).status);
    expect(guesses).toEqual([...Array<number>(10).fill(401), 429]);
    expect(
      (
        await from(peopled.stranger(), "203.0.113.50").ask(
          "POST",
          "/api/auth/request-password-reset",
          { email },
        )
      ).status,
    ).toBe(501);
  }, 240_000);

  test("are in the audit log, failed and successful ones, and rate-limited ones once", async () => {
    clock.advance(1_000_000);
    for (let tries = 0; tries < 14; tries += 1) await attempt("203.0.113.7");
    clock.advance(1);
    await from(peopled.stranger(), "203.0.113.8").signIn("nobody@example.com", "guess guess guess");
    const owner = from(peopled.stranger(), "203.0.113.9");
    clock.advance(1);
    await owner.signIn(email, ownersPassword);
    const entries = listAt(await owner.json("GET", "/security/audit?limit=13"), "data");
    expect(entries[0]).toMatchObject({
      action: "sign-in: password",
      outcome: "done",
      status: 200,
      address: "203.0.113.9",
      actor: { kind: "user", label: email },
    });
    expect(entries[1]).toMatchObject({
      action: "sign-in: password",
      outcome: "refused",
      status: 401,
      actor: { kind: "anonymous", id: "", label: "nobody@example.com" },
    });
    expect(entries[2]).toMatchObject({
      status: 429,
      address: "203.0.113.7",
      actor: { kind: "user", label: email },
    });
    expect(entries.slice(3).map((entry) => at(entry, "status"))).toEqual(
      Array<number>(10).fill(401),
    );
    expect(JSON.stringify(entries)).not.toContain("guess");
  });
});

test.skipIf(!hasRedis)(
  "sign-in attempts are shared by gateways on one database and survive a restart",
  async () => {
    const url = await migratedDatabase();
    const settings = { ...trusting, storageUrl: url, sharedUrl: await freshRedis() };
    const peopled = await startPeopled(url, settings);
    const other = await startGateway(settings);
    const elsewhere = new Browser(() => other);
    elsewhere.origin = publicOrigin;
    const statuses: number[] = [];
    for (let tries = 0; tries < 11; tries += 1) {
      const browser = from(tries % 2 === 0 ? peopled.stranger() : elsewhere, "198.51.100.7");
      statuses.push((await browser.signIn(email, "guess guess guess")).status);
    }
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429]);
    await other.stop();
    await peopled.restart();
    expect(
      (await from(peopled.stranger(), "198.51.100.7").signIn(email, ownersPassword)).status,
    ).toBe(429);
    await peopled.stop();
  },
  240_000,
);
