import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Redis } from "ioredis";
import { type HostedGateway, hostGateway } from "../../support/hosted-gateway.ts";
import { migratedDatabase } from "../../support/postgres.ts";
import { endProcesses } from "../../support/process.ts";
import {
  hasRedis,
  redisMissing,
  startWatchedServers,
  type WatchedServers,
} from "../../support/redis.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { acmeYaml } from "../process/support/acme-yaml.ts";
import { getJson, postChat } from "../process/support/ask.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { openHolds, untilIdle } from "../process/support/expect-nothing-held.ts";
import { queryDatabase } from "../process/support/query-database.ts";
import { chargeIn } from "../process/support/seen-charge.ts";
import { expectToStand, standingBooks } from "../process/support/standing-books.ts";
import { until } from "./support/until.ts";

const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
const inFlight = 12;
const name = "mymaster";

/** @see `docs/decisions/0122-sentinels-name-the-primary.md` */
describe.skipIf(!hasRedis)(`a primary that sentinels replace${redisMissing}`, () => {
  let servers: WatchedServers;
  let upstream: FaultUpstream;
  let databaseUrl: string;
  let gateways: HostedGateway[];
  beforeAll(async () => {
    [servers, upstream, databaseUrl] = await Promise.all([
      startWatchedServers(name),
      startFaultUpstream(),
      migratedDatabase(),
    ]);
    const start = (): Promise<HostedGateway> =>
      hostGateway({
        yaml: acmeYaml(upstream.baseUrl, "plans: { enterprise: { five_hour: 100000 } }\n"),
        environment: {
          ...bootstrapVariables,
          DATABASE_URL: databaseUrl,
          REDIS_URL: `redis://${name}`,
          REDIS_SENTINEL_URLS: servers.sentinelUrls.join(","),
          SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
        },
      });
    gateways = await Promise.all([start(), start()]);
  }, 240_000);
  afterAll(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    upstream.stop();
    await servers.stop();
    await endProcesses();
  });

  /** What the window of hours has counted, at the primary of the moment. */
  const countedHours = async (replicas: number): Promise<number> => {
    const client = new Redis({
      sentinels: servers.sentinelUrls.map((url) => ({
        host: new URL(url).hostname,
        port: Number(new URL(url).port),
      })),
      name,
    });
    const [key] = await client.keys("switchyard:hours:*");
    const counted = Number(key === undefined ? 0 : await client.hget(key, "t"));
    // What the replicas have not heard of is lost with the primary.
    await client.wait(replicas, 0);
    client.disconnect();
    return counted;
  };

  test(`${inFlight} responses in flight are charged once, and the next primary serves requests`, async () => {
    const gate = upstream.gate();
    upstream.script((request) => {
      const [head, first, ...rest] = chatAnswer(request, { usage });
      if (head === undefined || first === undefined)
        throw new Error("the fixture has too few steps");
      return [head, first, gate, ...rest];
    });
    const answers = Array.from({ length: inFlight }, (_, index) =>
      postChat(gateways[index % 2]!, { stream: index % 3 !== 0 }).then((response) =>
        response.text(),
      ),
    );
    await upstream.waitForRequest(inFlight);
    const countedBefore = await countedHours(2);
    await servers.killPrimary();
    gate.open();
    const seen = (await Promise.all(answers)).flatMap(chargeIn);
    expect(seen).toHaveLength(inFlight);

    upstream.script((request) => chatAnswer(request, { usage }));
    let asked = 0;
    for (const gateway of gateways) {
      const isReady = async (): Promise<boolean> => (await fetch(`${gateway.url}/readyz`)).ok;
      await until(isReady, { patienceMs: 120_000, what: "the next primary is found" });
      await until(
        async () => {
          asked += 1;
          const response = await postChat(gateway);
          const isServed = response.status === 200;
          seen.push(...chargeIn(await response.text()));
          return isServed;
        },
        { patienceMs: 120_000, what: "requests are served by the next primary" },
      );
    }
    await Promise.all(gateways.map(untilIdle));
    const query = (text: string): Promise<Record<string, unknown>[]> =>
      queryDatabase(databaseUrl, text);
    const books = await standingBooks({ options: {}, query });
    expectToStand(seen, books);
    expect(books.charges.size).toBe(inFlight + gateways.length);
    expect(await query("select id from transfers where kind = 'uncollected'")).toEqual([]);
    // The next primary has the window, so what the database knows of it is not added again.
    expect(countedBefore).toBe(inFlight);
    const countedAfter = await countedHours(0);
    expect(countedAfter).toBeGreaterThanOrEqual(inFlight);
    expect(countedAfter).toBeLessThanOrEqual(inFlight + asked);
    for (const gateway of gateways) {
      expect(await openHolds(gateway)).toBe(0);
      expect(await getJson(gateway, "/credits")).toMatchObject({
        balance: Number(books.balanceNano / 1_000n) / 1e6,
      });
    }
  }, 600_000);
});
