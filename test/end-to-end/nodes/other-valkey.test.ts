import { connect, createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Redis } from "ioredis";
import { endProcesses, type GatewayProcess } from "../../support/process.ts";
import { programPath } from "../../support/program.ts";
import { hasRedis, redisMissing, startRedis } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { postChat } from "../process/support/ask.ts";
import { startNodes, type Nodes } from "./support/nodes.ts";
import { until } from "./support/until.ts";

/** Forwards connections to a server that can be exchanged, as a name or a virtual address can. */
class Address {
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;
  private target = 0;

  constructor() {
    this.server = createServer((client) => {
      const upstream = connect(this.target, "127.0.0.1");
      for (const socket of [client, upstream]) {
        this.sockets.add(socket);
        socket
          .on("error", () => undefined)
          .on("close", () => [client, upstream].map((each) => each.destroy()));
      }
      client.pipe(upstream).pipe(client);
    });
  }

  /** Forwards to another port from now on. */
  pointTo(url: string): void {
    this.target = Number(new URL(url).port);
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
  }

  listen(): Promise<string> {
    return new Promise((resolve) =>
      this.server.listen(0, "127.0.0.1", () => {
        const address = this.server.address();
        resolve(`redis://127.0.0.1:${typeof address === "object" ? address?.port : 0}`);
      }),
    );
  }

  close(): void {
    this.pointTo("redis://127.0.0.1:1");
    this.server.close();
  }
}

const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
/** A request that holds every credit there is. */
const holdsAll = { max_tokens: 1_000 };
/** For the three requests that hold all, and a fourth that another gateway admits. */
const credits = "0.00015";

/** @see `docs/decisions/0164-shared-state-and-database-name-each-other.md` */
describe.skipIf(!hasRedis)(`gateways and the Valkey of their database${redisMissing}`, () => {
  let nodes: Nodes;
  let client: Redis;
  const address = new Address();
  beforeAll(async () => {
    nodes = await startNodes({ credits });
    client = new Redis(nodes.redis.url);
  }, 600_000);
  afterAll(async () => {
    client.disconnect();
    await endProcesses();
    address.close();
    await nodes.stop();
  }, 600_000);

  const statusOf = async (gateway: GatewayProcess): Promise<number> => {
    const response = await postChat(gateway, holdsAll);
    await response.text();
    return response.status;
  };

  /** The first answer that says whether the request was admitted. */
  const decisionOf = async (gateway: GatewayProcess): Promise<number> => {
    let status = 503;
    const isDecided = async () => (status = await statusOf(gateway)) !== 503;
    await until(isDecided, { patienceMs: 60_000, what: "the gateway decides" });
    return status;
  };

  async function withAllHeld(work: () => Promise<void>): Promise<void> {
    const gate = nodes.upstream.gate();
    nodes.upstream.script((request) => {
      const [head, ...rest] = chatAnswer(request, { usage });
      return [head!, gate, ...rest];
    });
    const asked = nodes.upstream.requests.length + 1;
    const first = statusOf(nodes.gateways[0]);
    await nodes.upstream.waitForRequest(asked);
    await work();
    gate.open();
    expect(await first).toBe(200);
    expect(nodes.upstream.requests).toHaveLength(asked);
  }

  const lastingKeys = async (): Promise<string[]> => {
    const names = await client.keys("*");
    const left = await Promise.all(names.map((name) => client.pttl(name)));
    return names.filter((_, index) => left[index] === -1);
  };

  test("a gateway with another Valkey database does not start, and names both", async () => {
    const other = `${nodes.redis.url}/1`;
    const { exitCode, stderr } = await nodes.runWith({ REDIS_URL: other });
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain(`${new URL(other).host}/1`);
    expect(stderr).toContain(`the database names ${new URL(nodes.redis.url).host})`);
    for (const { url } of nodes.gateways) expect((await fetch(`${url}/readyz`)).status).toBe(200);
    const doctor = [process.execPath, programPath("switchyard"), "doctor", "--offline"];
    const isRight = await nodes.runWith({}, doctor);
    expect(isRight.stdout).toContain("is that of the database");
    expect([isRight.exitCode, isRight.stderr]).toEqual([0, ""]);
    const isOther = await nodes.runWith({ REDIS_URL: other }, doctor);
    expect(isOther.stderr).toContain(`the one at ${new URL(other).host}/1 names no database`);
  }, 600_000);

  test("a Valkey that is emptied lends no credits that are held, and all keys expire", async () => {
    await withAllHeld(async () => {
      expect(await statusOf(nodes.gateways[1])).toBe(402);
      expect(await lastingKeys()).toEqual([]);
      await client.flushall();
      expect(await decisionOf(nodes.gateways[1])).toBe(402);
      expect(await lastingKeys()).toEqual([]);
    });
  }, 600_000);

  test("a Valkey that is set back to earlier keys begins another run, and lends nothing that is held", async () => {
    const names = await client.keys("*");
    const dumps = await Promise.all(
      names.map(
        async (name) => [name, await client.pttl(name), await client.dumpBuffer(name)] as const,
      ),
    );
    const runOf = () => client.get("switchyard:run");
    const checks = async () => Number(await client.get("switchyard:pairing-checks"));
    const [run, count] = [await runOf(), await checks()];
    await withAllHeld(async () => {
      const haveChecked = async () => (await checks()) > count + 4;
      await until(haveChecked, { patienceMs: 60_000, what: "both gateways have checked again" });
      const commands = client.multi().flushall();
      for (const [name, leftMs, dump] of dumps) commands.restore(name, Math.max(leftMs, 1), dump);
      await commands.exec();
      const isAnother = async () => (await runOf()) !== run;
      await until(isAnother, { patienceMs: 60_000, what: "another run begins" });
      expect(await decisionOf(nodes.gateways[1])).toBe(402);
    });
  }, 600_000);

  test("a gateway whose Valkey is exchanged admits nothing until it has the one of the others", async () => {
    address.pointTo(nodes.redis.url);
    const third = await nodes.startWith({ REDIS_URL: await address.listen() });
    const other = await startRedis();
    try {
      await withAllHeld(async () => {
        expect(await statusOf(third)).toBe(402);
        address.pointTo(other.url);
        await third.stderrHas("paid requests are refused: the shared state does not match");
        const refused = await postChat(third, holdsAll);
        expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "2"]);
        expect(await refused.text()).toContain("is not the one of the other gateways");
        expect((await fetch(`${third.url}/readyz`)).status).toBe(503);
        expect(await statusOf(nodes.gateways[1])).toBe(402);
        address.pointTo(nodes.redis.url);
        expect(await decisionOf(third)).toBe(402);
      });
    } finally {
      await other.kill();
    }
    expect(await third.terminate()).toBe(0);
  }, 600_000);

  test("gateways that were all stopped take another Valkey over", async () => {
    for (const gateway of nodes.gateways) await gateway.terminate();
    const moved = await nodes.startWith({ REDIS_URL: `${nodes.redis.url}/1` });
    nodes.upstream.script((request) => chatAnswer(request, { usage }));
    expect(await statusOf(moved)).toBe(200);
    const { exitCode, stderr } = await nodes.runWith({});
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain("do not use it");
  }, 600_000);
});
