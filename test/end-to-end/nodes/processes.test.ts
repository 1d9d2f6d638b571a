import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { KeepAliveClient, type RawReply } from "../../support/keep-alive-client.ts";
import { freshDatabase } from "../../support/postgres.ts";
import {
  endProcesses,
  runProcess,
  startProcess,
  terminateStarting,
  type GatewayProcess,
} from "../../support/process.ts";
import { hasRedis, redisMissing, startRedis, type RedisServer } from "../../support/redis.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at } from "../api/at.ts";
import { acmeYaml } from "../process/support/acme-yaml.ts";
import { getJson, postChat } from "../process/support/ask.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { freePort, isRefused } from "../process/support/ports.ts";
import { queryDatabase } from "../process/support/query-database.ts";
import { chargeIn } from "../process/support/seen-charge.ts";
import { standingBooks } from "../process/support/standing-books.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { until } from "./support/until.ts";

const processes = "server: { processes: 3 }\n";

afterAll(endProcesses);

test("several processes without Postgres and Valkey are refused with the setting's name", async () => {
  const { exitCode, stderr } = await runProcess({ yaml: "server: { processes: auto }\n" });
  expect(exitCode).toBe(1);
  expect(stderr).toContain(
    "server.processes: several processes need Postgres (DATABASE_URL or storage.url) and Valkey (REDIS_URL or shared.url)",
  );
});

describe.skipIf(!hasRedis)(`three processes on one port${redisMissing}`, () => {
  let redis: RedisServer;
  let upstream: FaultUpstream;
  let databaseUrl = "";
  let gateway: GatewayProcess;

  const options = (yaml: string, environment: Record<string, string> = {}) => ({
    yaml: acmeYaml(upstream.baseUrl, yaml),
    environment: {
      ...bootstrapVariables,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redis.url,
      SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
      ...environment,
    },
  });
  beforeAll(async () => {
    [upstream, redis] = await Promise.all([startFaultUpstream(), startRedis()]);
    databaseUrl = await freshDatabase();
    gateway = await startProcess(options(processes));
  }, 600_000);
  afterAll(async () => {
    await endProcesses();
    upstream.stop();
    await redis.kill();
  });

  const childrenOf = (pid: number): number[] =>
    Bun.spawnSync(["ps", "-o", "pid=", "--ppid", String(pid)])
      .stdout.toString()
      .split(/\s+/)
      .filter((text) => text !== "")
      .map(Number);
  const nodesOf = async (): Promise<{ id: string; name: string }[]> =>
    at(await getJson(gateway, "/admin/overview", testManagementKey), "gateways.data") as {
      id: string;
      name: string;
    }[];
  /** Numbers of the processes that report metrics, whichever of them is asked. */
  const reporting = async (): Promise<string[]> => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    const numbers = text.matchAll(/^switchyard_requests_in_flight\{process="(\d)"\} /gm);
    return [...numbers].map(([, number = ""]) => number).sort();
  };
  const asked = async (): Promise<number> => {
    const response = await postChat(gateway, {}, {});
    await response.text();
    return response.status;
  };

  test("act as one gateway with one ready line, one set of metrics and shared connections", async () => {
    expect(gateway.stdoutLines.filter((line) => line.startsWith("switchyard ready"))).toHaveLength(
      1,
    );
    expect(childrenOf(gateway.child.pid)).toHaveLength(3);
    expect((await nodesOf()).map(({ name }) => name.split("/").at(-1))).toEqual(["1", "2", "3"]);
    const clients = await Promise.all(
      Array.from({ length: 60 }, () => KeepAliveClient.connect(gateway.port)),
    );
    const replies = await Promise.all(clients.map((client) => client.request("/healthz")));
    for (const client of clients) client.close();
    expect(replies.every((reply) => reply.complete && reply.status === 200)).toBe(true);
    // A busy process may miss the time that the others wait for its metrics.
    let served: RegExpExecArray[] = [];
    await pollUntil(async () => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      served = [
        ...text.matchAll(/^switchyard_requests_total\{process="(\d)",.*healthz.* (\d+)$/gm),
      ];
      return served.length === 3;
    });
    await pollUntil(async () => (await reporting()).length === 3);
    expect(served.map(([, number = ""]) => number)).toEqual(["1", "2", "3"]);
    expect(served.reduce((sum, [, , count]) => sum + Number(count), 0)).toBe(60);
  }, 600_000);

  test("a killed process is restarted while the others serve", async () => {
    const [killed = 0] = childrenOf(gateway.child.pid);
    const before = (await nodesOf()).map(({ id }) => id);
    process.kill(killed, "SIGKILL");
    await gateway.stderrHas("a gateway process ended and is started again");
    for (let each = 0; each < 20; each += 1) expect(await asked()).toBe(200);
    const isBack = async (): Promise<boolean> =>
      (await reporting()).length === 3 || Bun.sleep(100).then(() => false);
    await until(isBack, { patienceMs: 50_000, what: "three processes report metrics again" });
    expect(childrenOf(gateway.child.pid)).not.toContain(killed);
    expect((await nodesOf()).filter(({ id }) => !before.includes(id))).toHaveLength(1);
    expect(gateway.stdoutLines.filter((line) => line.startsWith("switchyard ready"))).toHaveLength(
      1,
    );
  }, 600_000);

  test("a second gateway on the port is refused in one sentence, although the port is shared", async () => {
    for (const yaml of [processes, ""]) {
      const { exitCode, stderr } = await runProcess(options(yaml, { PORT: String(gateway.port) }));
      expect([exitCode, stderr]).toEqual([
        1,
        expect.stringContaining(`port ${gateway.port} is taken by another program`),
      ]);
    }
    expect(await asked()).toBe(200);
  }, 600_000);

  test("a process that cannot start ends all of them with its exit code and message", async () => {
    const { exitCode, stderr, stdout } = await runProcess(
      options(processes, { SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 8).toString("base64") }),
    );
    expect([exitCode, stdout]).toEqual([1, ""]);
    expect(stderr.match(/SWITCHYARD_ENCRYPTION_KEY/g)).toHaveLength(1);
  }, 600_000);

  test("SIGTERM before they are ready ends all of them with 0", async () => {
    const away = `postgres://127.0.0.1:${freePort()}/away`;
    const ended = await terminateStarting(
      options(processes, { DATABASE_URL: away }),
      "waiting for the database",
    );
    expect(ended).toMatchObject({ exitCode: 0, stdout: "" });
  }, 600_000);

  test("SIGHUP to the supervisor reaches every process", async () => {
    gateway.child.kill("SIGHUP");
    const times = async (): Promise<boolean> =>
      gateway.stderrText.split("the catalog was replaced").length - 1 >= 3 ||
      Bun.sleep(50).then(() => false);
    await until(times, { patienceMs: 50_000, what: "three catalogs were replaced" });
  }, 600_000);

  test("SIGTERM under a load of 32 connections drops no request and exits with 0", async () => {
    const before = upstream.requests.length;
    const earlier = await books();
    const replies: { sent: string; reply: RawReply }[] = [];
    const { promise: warm, resolve: isWarm } = Promise.withResolvers<void>();
    const keepAsking = async (name: number): Promise<void> => {
      const client = await KeepAliveClient.connect(gateway.port);
      for (let ordinal = 0; !client.isOver; ordinal += 1) {
        const sent = `${name}-${ordinal}`;
        const reply = await client.request("/v1/chat/completions", {
          secret: testLlmKey,
          body: {
            model: "acme/large",
            stream: ordinal % 2 === 0,
            messages: [{ role: "user", content: sent }],
          },
        });
        replies.push({ sent, reply });
        if (replies.length === 200) isWarm();
        if (reply.complete && reply.closesConnection) return;
      }
    };
    const pids = childrenOf(gateway.child.pid);
    const clients = Promise.all(Array.from({ length: 32 }, (_, name) => keepAsking(name)));
    await warm;
    const exited = gateway.terminate();
    await clients;
    expect(await exited).toBe(0);
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow();
    const reached = new Set(
      upstream.requests.slice(before).map((request) => at(request.json(), "messages.0.content")),
    );
    const unanswered = replies.filter(({ reply }) => !reply.complete);
    console.log(
      `${replies.length} requests on 32 connections, ${unanswered.length} met a closed connection`,
    );
    expect(unanswered.filter(({ sent }) => reached.has(sent))).toEqual([]);
    const answered = replies.flatMap(({ reply }) => (reply.complete ? [reply] : []));
    expect(answered.filter(({ status }) => status !== 200)).toEqual([]);
    expect(answered.length).toBe(reached.size);
    const shown = answered.flatMap(({ body }) => chargeIn(body));
    expect((await books()).charges.size - earlier.charges.size).toBe(shown.length);
  }, 600_000);

  test("processes end by themselves after their supervisor is killed", async () => {
    const other = await startProcess(options(processes, { PORT: String(freePort()) }));
    const pids = childrenOf(other.child.pid);
    expect(pids).toHaveLength(3);
    await other.kill9();
    const isOver = async (): Promise<boolean> =>
      (await isRefused(other.port)) || Bun.sleep(50).then(() => false);
    await until(isOver, { patienceMs: 50_000, what: "none of them listens any more" });
  }, 600_000);

  const books = () =>
    standingBooks({ options: {}, query: (text) => queryDatabase(databaseUrl, text) });
});
