import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { z } from "zod";
import { type FaultScrapes, testAlert } from "../../support/alert-firing.ts";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import { programPath } from "../../support/program.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { postChat } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { commitFaults, openFaultyStore, type FaultyStore } from "./support/commit-faults.ts";
import { openHolds } from "./support/expect-nothing-held.ts";
import { chargeIn, type SeenCharge } from "./support/seen-charge.ts";
import { expectToStand, standingBooks } from "./support/standing-books.ts";
import { pollUntil } from "../../support/poll-until.ts";

const clientCount = 12;

let upstream: FaultUpstream;
let store: FaultyStore;
let gateway: GatewayProcess;

afterAll(endProcesses);

/**
 * `prlimit` can end a process that does not ignore SIGXFSZ; what is ignored stays so in the program
 * that is executed.
 */
const command = ["sh", "-c", 'trap "" XFSZ; exec "$0" "$@"', process.execPath, programPath("main")];

async function open(engine: "SQLite" | "Postgres"): Promise<void> {
  store = await openFaultyStore(engine);
  gateway = await startProcess({
    command,
    yaml: acmeYaml(upstream.baseUrl),
    environment: { ...bootstrapVariables, ...store.options.environment },
    ...(store.options.dataDirectory === undefined
      ? {}
      : { dataDirectory: store.options.dataDirectory }),
  });
}

async function readyz(): Promise<number> {
  return (await fetch(`${gateway.url}/readyz`)).status;
}

const scrape = async (): Promise<string> => (await fetch(`${gateway.url}/metrics`)).text();

async function metric(name: string): Promise<number> {
  const text = await scrape();
  return Number(new RegExp(`^switchyard_${name} (\\d+)$`, "m").exec(text)?.[1] ?? Number.NaN);
}

/** Clients that ask one request after another, whole and streamed, until one is refused. */
function startClients() {
  const seen: SeenCharge[] = [];
  const client = async (ordinal: number): Promise<void> => {
    for (let count = 0, refused = false; !refused; count += 1) {
      const text = await (await postChat(gateway, { stream: (ordinal + count) % 2 === 0 })).text();
      seen.push(...chargeIn(text));
      refused = text.includes("takes no charges");
    }
  };
  return {
    seen,
    done: Promise.all(Array.from({ length: clientCount }, (_, ordinal) => client(ordinal))),
  };
}

const lostRows = z.tuple([z.object({ count: z.coerce.number(), nano: z.coerce.bigint() })]);
const lostSql =
  "select count(*) as count, coalesce(sum(amount_nano), 0) as nano from transfers where kind = 'uncollected'";
const countedSql =
  "select coalesce(sum(requests), 0) as count, coalesce(sum(uncollected_nano), 0) as nano from uncollected_days";
const countRow = z.tuple([z.object({ count: z.coerce.number() })]);

/** What each fault looks like to Prometheus. */
const scrapes = new Map<string, FaultScrapes>();

describe.each(commitFaults)("$engine with $name", ({ engine, name, hidden, begin }) => {
  beforeEach(async () => {
    upstream = await startFaultUpstream();
  });
  afterEach(async () => {
    await gateway.kill9();
    upstream.stop();
    await store.stop();
  });
  test("loses at most what was in flight, books it as uncollected, and sends no provider requests until then", async () => {
    await open(engine);
    const clients = startClients();
    while (clients.seen.length < 50)
      clients.seen.push(...chargeIn(await (await postChat(gateway)).text()));
    const before = await scrape();
    const end = await begin(store.place, gateway);
    // Every client ends with a refusal; those that were in flight have waited for the database by
    // then.
    await clients.done;
    const askedBefore = upstream.requests.length;
    const beganMs = performance.now();
    for (let count = 0; count < 40; count += 1) {
      const response = await postChat(gateway, { stream: count % 2 === 0 });
      const text = await response.text();
      expect(response.status === 503 || hidden === true).toBe(true);
      clients.seen.push(...chargeIn(text));
    }
    // One a second.
    const trialsMax = hidden === true ? Math.ceil((performance.now() - beganMs) / 1_000) + 1 : 0;
    expect(upstream.requests.length - askedBefore).toBeLessThanOrEqual(trialsMax);
    if (hidden !== true) expect(await readyz()).toBe(503);
    expect(await openHolds(gateway)).toBe(0);
    scrapes.set(`${engine} with ${name}`, { before, during: await scrape() });

    await end();
    await pollUntil(async () => (await readyz()) === 200);
    for (let served = 0; served < 3; ) {
      const charges = chargeIn(await (await postChat(gateway)).text());
      clients.seen.push(...charges);
      served += charges.length;
    }
    while ((await metric("uncollected_charges_waiting")) > 0) await Bun.sleep(100);
    const rejectedCount = await metric("commits_rejected_total");
    await gateway.terminate();
    const books = await standingBooks(store);
    expectToStand(clients.seen, books);
    const [lost] = lostRows.parse(await store.query(lostSql));
    const [{ count: recordCount }] = countRow.parse(
      await store.query("select count(*) as count from generations"),
    );
    // Every answer of the provider is in the books: charged, or as uncollected.
    expect(recordCount).toBe(upstream.requests.length);
    expect(clients.seen.length + lost.count).toBe(upstream.requests.length);
    expect(lost.count).toBeLessThanOrEqual(
      clientCount + 1 + trialsMax + (hidden === true ? 12 : 0),
    );
    expect(rejectedCount).toBeGreaterThanOrEqual(lost.count);
    const counted = lostRows.parse(await store.query(countedSql));
    expect(counted).toEqual([lost]);
    const lines = gateway.stderrText
      .split("\n")
      .filter((line) => /"level":(40|50|"warn"|"error")/.test(line));
    expect(lines.length).toBeLessThan(12);
    await gateway.stderrHas("commits rejected");
    await gateway.stderrHas("the database takes commits again");
  });
});

describe.each(commitFaults)("$engine with $name", ({ engine, name }) => {
  testAlert("SwitchyardCommitsRejected", () => scrapes.get(`${engine} with ${name}`)!);
});
