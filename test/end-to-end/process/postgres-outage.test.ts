import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type FaultScrapes, testAlert } from "../../support/alert-firing.ts";
import { CuttingProxy } from "../../support/cutting-proxy.ts";
import { migratedDatabase } from "../../support/postgres.ts";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at } from "../api/at.ts";
import { postChat } from "./support/ask.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { expectNothingHeld, openHolds } from "./support/expect-nothing-held.ts";
import { queryDatabase } from "./support/query-database.ts";
import { chargeIn, type SeenCharge } from "./support/seen-charge.ts";
import { expectToStand, standingBooks } from "./support/standing-books.ts";
import type { OpenedStore } from "./support/stores.ts";
import { pollUntil } from "../../support/poll-until.ts";

let upstream: FaultUpstream;
let proxy: CuttingProxy;
let store: OpenedStore;
let gateway: GatewayProcess;

afterAll(endProcesses);

/** So that no rate window answers what the tests send one after the other. */
const noWindow = "plans: { enterprise: { per_minute: 1000000 } }";

const start = (): Promise<GatewayProcess> =>
  startProcess({
    yaml: acmeYaml(upstream.baseUrl, noWindow),
    environment: { ...bootstrapVariables, ...store.options.environment },
  });

/** Asks until the answer is the one that is waited for; the test's own time limit ends it. */
async function readyzIs(status: number): Promise<unknown> {
  for (;;) {
    const response = await fetch(`${gateway.url}/readyz`);
    const body: unknown = await response.json();
    if (response.status === status) return body;
    await Bun.sleep(20);
  }
}

/** Requests are refused before any provider is asked. */
async function expectRefusalsWithoutProviders(): Promise<void> {
  const askedCount = upstream.requests.length;
  for (const stream of [false, true]) {
    const refused = await postChat(gateway, { stream });
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("2");
    expect(at(await refused.json(), "error.message")).toContain("takes no charges");
  }
  expect(upstream.requests).toHaveLength(askedCount);
}

const scrape = async (): Promise<string> => (await fetch(`${gateway.url}/metrics`)).text();

async function gaugeOf(name: string): Promise<number> {
  const text = await scrape();
  return Number(new RegExp(`^\\S*${name} (\\d+)$`, "m").exec(text)?.[1] ?? Number.NaN);
}

let idle: FaultScrapes;
let refusing: FaultScrapes;

describe("Postgres", () => {
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    const url = new URL(await migratedDatabase());
    proxy = new CuttingProxy({ host: url.hostname, port: Number(url.port) });
    const proxied = Object.assign(new URL(url), { port: String(await proxy.listen()) });
    const environment = {
      DATABASE_URL: proxied.href,
      SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
    };
    store = { options: { environment }, query: (text) => queryDatabase(url.href, text) };
    gateway = await start();
  });
  afterAll(async () => {
    await gateway.kill9();
    await proxy.close();
    upstream.stop();
  });

  test("that is down makes the gateway unready, nothing is charged, and deliveries are booked later", async () => {
    expect((await postChat(gateway)).status).toBe(200);
    const before = await scrape();
    proxy.mode = "refuse";
    proxy.cutAll();
    expect(await readyzIs(503)).toEqual({ status: "unready", unready: ["storage"] });
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    expect(await Promise.all([gaugeOf("ready"), gaugeOf("storage_up")])).toEqual([0, 0]);
    idle = { before, during: await scrape() };
    const [whole, stream] = await Promise.all(
      [false, true].map(async (streamed) => {
        const response = await postChat(gateway, { stream: streamed });
        return { status: response.status, text: await response.text() };
      }),
    );
    expect(whole?.status).toBe(503);
    expect(at(JSON.parse(whole?.text ?? ""), "error.code")).toBe("service_unavailable");
    expect(stream?.text).not.toContain('"cost"');
    expect(stream?.text).toContain('"service_unavailable"');
    expect(await openHolds(gateway)).toBe(0);
    await expectRefusalsWithoutProviders();
    refusing = { before, during: await scrape() };

    proxy.mode = "pass";
    expect(await readyzIs(200)).toEqual({ status: "ready", unready: [] });
    await pollUntil(async () => (await gaugeOf("uncollected_charges_waiting")) === 0);
    const { charges, balanceNano } = await standingBooks(store);
    // What was delivered meanwhile is in the books without a charge.
    expect([...charges.values()].map((nano) => nano > 0n).sort()).toEqual([false, false, true]);
    await expectNothingHeld(gateway, balanceNano);
  });

  const cuts = ["lose-request", "lose-answer", "pass"] as const;
  test.each(cuts)("with connections cut under load (%s) keeps every charge once", async (mode) => {
    const earlier = await standingBooks(store);
    const acceptedBefore = proxy.acceptedCount;
    const seen: SeenCharge[] = [];
    const refusals: string[] = [];
    const client = async (ordinal: number): Promise<void> => {
      for (let count = 0; count < 25; count += 1) {
        const response = await postChat(gateway, { stream: (ordinal + count) % 2 === 0 });
        const text = await response.text();
        const charges = chargeIn(text);
        if (charges.length === 0) refusals.push(text);
        seen.push(...charges);
        if (seen.length % 60 !== 0) continue;
        proxy.mode = mode;
        if (mode === "pass") proxy.cutAll();
      }
    };
    // One cut is enough for a mode: what comes next passes, so that the gateway can reconnect.
    proxy.cutWhen = () => {
      proxy.mode = "pass";
      return true;
    };
    await Promise.all(Array.from({ length: 16 }, (_, ordinal) => client(ordinal)));
    proxy.mode = "pass";
    expect(refusals).toEqual([]);
    expect(seen).toHaveLength(16 * 25);
    await readyzIs(200);
    const books = await standingBooks(store);
    expectToStand(seen, books);
    expect(books.charges.size - earlier.charges.size).toBe(seen.length);
    await expectNothingHeld(gateway, books.balanceNano);
    // The gateway connected again after the cuts; of many losses it logs only some.
    expect(proxy.acceptedCount).toBeGreaterThan(acceptedBefore);
    await gateway.stderrHas("the database session for commits was lost");
  });

  test("is handed over from one gateway to the next without an interruption", async () => {
    expect((await postChat(gateway)).status).toBe(200);
    const [next, code] = await Promise.all([start(), gateway.terminate()]);
    expect(code).toBe(0);
    gateway = next;
    const { balanceNano } = await standingBooks(store);
    await expectNothingHeld(gateway, balanceNano);
  });
});

testAlert("SwitchyardDatabaseAway", () => idle);
testAlert("SwitchyardNotReady", () => idle);
testAlert("SwitchyardOwnErrors", () => refusing, { goesOn: true });
testAlert("SwitchyardChargesWaiting", () => refusing);
