import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { z } from "zod";
import { testLlmKey } from "../../support/gateway.ts";
import { startPostgres, type PostgresServer } from "../../support/postgres.ts";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import { hasRedis, redisMissing, startRedis, type RedisServer } from "../../support/redis.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { until } from "../nodes/support/until.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { postChat } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { untilIdle, untilUncollectedIsBooked } from "./support/expect-nothing-held.ts";
import { queryDatabase } from "./support/query-database.ts";
import { chargeIn, type SeenCharge } from "./support/seen-charge.ts";
import { expectToStand, standingBooks } from "./support/standing-books.ts";

const clientsPerGateway = 6;
/** What only requests say that come in the silence. */
const inSilence = "asked in the silence";

let upstream: FaultUpstream;
let server: PostgresServer;
let databaseUrl: string;
let redis: RedisServer | undefined;
let gateways: GatewayProcess[];
let isSilent = false;
/** Lets the server go on, also where the test ends early: what stands still cannot end. */
let resume: () => void = () => undefined;

async function open(count: number): Promise<void> {
  redis = count > 1 ? await startRedis() : undefined;
  databaseUrl = await server.freshDatabase();
  const environment = {
    ...bootstrapVariables,
    DATABASE_URL: databaseUrl,
    SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
    ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
  };
  const yaml = acmeYaml(upstream.baseUrl);
  gateways = await Promise.all(
    Array.from({ length: count }, () => startProcess({ yaml, environment })),
  );
}

beforeEach(async () => {
  gateways = [];
  isSilent = false;
  [upstream, server] = await Promise.all([startFaultUpstream(), startPostgres()]);
}, 600_000);
afterEach(async () => {
  resume();
  await endProcesses();
  upstream.stop();
  await redis?.kill();
  await server.stop();
}, 600_000);
afterAll(endProcesses);

const childrenOf = (parent: number): number[] =>
  readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8")
    .split(" ")
    .map(Number)
    .filter(Boolean);

const fileRow = z.tuple([z.object({ file: z.string() })]);

/** Stops every process of the server where it stands; gives what lets them go on. */
async function silencePostgres(): Promise<() => void> {
  const [{ file }] = fileRow.parse(
    await queryDatabase(databaseUrl, "select pg_read_file('postmaster.pid') as file"),
  );
  const parent = Number.parseInt(file, 10);
  // The parent first, so that it begets no more.
  process.kill(parent, "SIGSTOP");
  const stopped = [...childrenOf(parent), parent];
  for (const pid of stopped) process.kill(pid, "SIGSTOP");
  return () => {
    for (const pid of stopped.splice(0)) process.kill(pid, "SIGCONT");
  };
}

/** Clients that ask one request after another, whole and streamed, until `end` is called. */
function startClients(gateway: GatewayProcess, seen: SeenCharge[]) {
  let isOver = false;
  const client = async (ordinal: number): Promise<void> => {
    for (let count = 0; !isOver; count += 1) {
      const text = await (await postChat(gateway, { stream: (ordinal + count) % 2 === 0 })).text();
      seen.push(...chargeIn(text));
      // It would be refused again and again.
      if (isSilent && text.includes("service_unavailable")) return;
    }
  };
  const clients = Array.from({ length: clientsPerGateway }, (_, ordinal) => client(ordinal));
  return {
    end: async () => {
      isOver = true;
      await Promise.all(clients);
    },
  };
}

const readyzOf = async ({ url }: GatewayProcess): Promise<number> =>
  (await fetch(`${url}/readyz`)).status;

const countRow = z.tuple([z.object({ count: z.coerce.number() })]);
const countOf = async (table: string): Promise<number> =>
  countRow.parse(await queryDatabase(databaseUrl, `select count(*) as count from ${table}`))[0]
    .count;

const cases = [
  { name: "one gateway", count: 1, isSkipped: false },
  { name: `two gateways on one Valkey${redisMissing}`, count: 2, isSkipped: !hasRedis },
];

for (const { name, count, isSkipped } of cases) {
  describe.skipIf(isSkipped)(`a Postgres that stops responding under ${name}`, () => {
    test("is detected: no provider is asked until it responds, and every response is booked once", async () => {
      await open(count);
      const seen: SeenCharge[] = [];
      const loads = gateways.map((gateway) => startClients(gateway, seen));
      while (seen.length < 20) await upstream.waitForRequest(upstream.requests.length + 1);
      resume = await silencePostgres();
      isSilent = true;
      await Promise.all(gateways.map(({ stderrHas }) => stderrHas("answers nothing")));
      for (const gateway of gateways) {
        for (const stream of [false, true]) {
          const messages = [{ role: "user", content: inSilence }];
          const refused = await postChat(gateway, { messages, stream });
          expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "2"]);
          await refused.text();
        }
        expect(await readyzOf(gateway)).toBe(503);
        const reading = await fetch(`${gateway.url}/api/v1/generation/${seen[0]?.generationId}`, {
          headers: { authorization: `Bearer ${testLlmKey}` },
        });
        expect([reading.status, reading.headers.get("retry-after")]).toEqual([503, "2"]);
        await reading.text();
      }
      const ended = loads.map(({ end }) => end());
      resume();
      await Promise.all(ended);
      expect(upstream.requests.filter(({ body }) => body.includes(inSilence))).toEqual([]);
      for (const gateway of gateways) {
        const isReady = async () => (await readyzOf(gateway)) === 200;
        await until(isReady, { patienceMs: 60_000, what: "the gateway is ready again" });
        for (let served = 0; served < 3; ) {
          const charges = chargeIn(await (await postChat(gateway)).text());
          seen.push(...charges);
          served += charges.length;
        }
        await untilUncollectedIsBooked(gateway);
        await untilIdle(gateway);
      }
      for (const gateway of gateways) {
        await gateway.terminate();
        expect(gateway.stderrText).not.toContain("was restored to an earlier state: shared data");
      }
      const books = await standingBooks({
        options: {},
        query: (text) => queryDatabase(databaseUrl, text),
      });
      expectToStand(seen, books);
      // Each answer of the provider is there: charged as it was shown, or borne by the operator.
      expect(await countOf("generations")).toBe(upstream.requests.length);
      const uncollected = await countOf("transfers where kind = 'uncollected'");
      expect(seen.length + uncollected).toBe(upstream.requests.length);
    }, 600_000);
  });
}
