import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { reportScript } from "../../../src/billing/ledger/shared/ledger-scripts.ts";
import { SharedState } from "../../../src/platform/shared-state/shared-state.ts";
import type { Storage } from "../../../src/platform/storage/storage.ts";
import type { LedgerTables } from "../../../src/billing/ledger/ledger-store.ts";
import { CuttingProxy } from "../../support/cutting-proxy.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { LedgerProcess, openLedgerDatabase } from "../../support/ledger-process.ts";
import { freshRedis, hasRedis, redisMissing } from "../../support/redis.ts";
import { silentLogger } from "../../support/silent-logger.ts";
import { textAt } from "../api/at.ts";
import { postChat } from "../process/support/ask.ts";
import { createKey } from "./support/manage.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";

/** Commands that run a script begin so (EVALSHA and EVAL); nothing else is sent but `INFO`. */
const scriptCommand = /evalsha?\r\n\$\d+\r\n([^\r]*)/gi;

const shaOf = (lua: string): string => new Bun.CryptoHasher("sha1").update(lua).digest("hex");

/** @see `docs/decisions/0125-a-charge-is-committed-first.md` */
describe.skipIf(!hasRedis)(`Valkey round trips of a paid request${redisMissing}`, () => {
  let storage: Storage<LedgerTables>;
  let proxy: CuttingProxy;
  let far: SharedState;
  let near: SharedState;
  beforeAll(async () => {
    storage = await openLedgerDatabase();
    const url = new URL(await freshRedis());
    proxy = new CuttingProxy({ host: url.hostname, port: Number(url.port) });
    const throughProxy = new URL(url);
    throughProxy.port = String(await proxy.listen());
    far = await SharedState.open({ url: throughProxy.href, logger: silentLogger });
    near = await SharedState.open({ url: url.href, logger: silentLogger });
  });
  afterAll(async () => {
    far.close();
    near.close();
    await proxy.close();
    await storage.close();
  });

  test("ten settlements wait for no round trip, send only reports, and the charges arrive once", async () => {
    const clock = new FakeClock();
    const parts = { storage, workspaceId: "ws_trips", clock };
    const one = new LedgerProcess({ ...parts, shared: far });
    const other = new LedgerProcess({ ...parts, shared: near });
    const { workspaceId } = parts;
    await one.ledger.credit({
      id: "txn_trips",
      workspaceId,
      bucket: "topup",
      amountNano: 1_000n,
      kind: "topup",
      reference: null,
    });
    const ids = Array.from({ length: 10 }, (_, index) => `gen_trips_${index}`);
    for (const holdId of ids)
      await one.ledger.reserve({
        holdId,
        workspaceId,
        keyId: "k",
        keyLimit: null,
        ceilingNano: 50n,
      });
    let sent = "";
    proxy.onRequest = (request) => (sent += request.toString("latin1"));
    proxy.mode = "hold-answers";
    // No answer of the server reaches this process before all of them are there.
    const posted = await Promise.all(
      ids.map(
        (holdId) =>
          one.ledger.post({
            holdId,
            amountNano: 40n,
            alongside: () => ({ inserts: [], adds: [] }),
          }).durable,
      ),
    );
    expect(posted).toMatchObject(ids.map(() => ({ ok: true, chargedNano: 40n })));
    expect(await one.durable()).toEqual({ monthlyNano: 0n, topupNano: 600n });
    proxy.onRequest = () => undefined;
    proxy.letAnswersGo();
    await one.untilTold();
    const names = [...sent.matchAll(scriptCommand)].map(([, script]) => script);
    expect(names.filter((name) => name !== shaOf(reportScript.lua))).toEqual([]);
    expect(await other.look()).toEqual({ monthlyNano: 0n, topupNano: 600n, heldNano: 0n });
  });
});

/** The scripts of one request that name its admission: its windows set it, its hold takes it. */
const admissionName = /switchyard:admitted:[0-9a-f]{32}/g;

/** Models of other surfaces, whose provider does not answer. */
const surfacesYaml = `
  - id: surfaces
    name: Surfaces
    base_url: http://127.0.0.1:1/v1
    dialect: { embeddings: openai-embeddings, rerank: cohere-rerank }
    api_key: upstream-secret
    models:
      - { id: acme/embed, surface: embeddings, context_length: 8192, pricing: { prompt: "1.00", completion: "0" } }
      - { id: acme/rank, surface: rerank, context_length: 8192, pricing: { prompt: "1.00", completion: "0" } }
`;

const questions = {
  "/chat/completions": { model: "acme/large", messages: [{ role: "user", content: "Hello" }] },
  "/rerank": { model: "acme/rank", query: "one", documents: ["two"] },
  "/embeddings": { model: "acme/embed", input: "Hello" },
} as const;

/** @see `docs/decisions/0126-one-round-trip-before-the-provider.md` */
describe.skipIf(!hasRedis)(`checks before the provider request${redisMissing}`, () => {
  let nodes: HostedNodes;
  let proxy: CuttingProxy;
  beforeAll(async () => {
    nodes = await hostNodes({
      yaml: surfacesYaml,
      redisUrlFor: async (text) => {
        const url = new URL(text);
        proxy = new CuttingProxy({ host: url.hostname, port: Number(url.port) });
        url.port = String(await proxy.listen());
        return url.href;
      },
    });
  }, 240_000);
  afterAll(async () => {
    await nodes.stop();
    await proxy.close();
  });

  test("window and hold are requested together, and the provider only after both", async () => {
    const [gateway] = nodes.gateways;
    // Accounts are read and scripts are known from here on.
    expect((await postChat(gateway)).status).toBe(200);
    const askedBefore = nodes.upstream.requests.length;
    let sent = "";
    const both = Promise.withResolvers<void>();
    proxy.onRequest = (request) => {
      sent += request.toString("latin1");
      if ((sent.match(admissionName)?.length ?? 0) === 2) both.resolve();
    };
    proxy.mode = "hold-answers";
    const asking = postChat(gateway);
    await both.promise;
    expect(nodes.upstream.requests).toHaveLength(askedBefore);
    proxy.onRequest = () => undefined;
    proxy.letAnswersGo();
    // A machine that stood still for a second meanwhile makes it a 503.
    expect([200, 503]).toContain((await asking).status);
    expect(new Set(sent.match(admissionName)).size).toBe(1);
  }, 240_000);

  const send = (
    path: keyof typeof questions,
    { secret, changes = {} }: { secret: string; changes?: Record<string, unknown> },
  ): Promise<Response> =>
    fetch(`${nodes.gateways[0].url}/api/v1${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        "gw-skip-cache": "true",
      },
      body: JSON.stringify({ ...questions[path], ...changes }),
    });

  /**
   * Returns what a gateway sends before it receives an answer, once it has sent both scripts of a
   * request. Tries again where a machine that stood still made the shared server late.
   */
  async function sentBeforeAnswers(ask: () => Promise<Response>): Promise<string> {
    for (;;) {
      await until200(ask);
      let sent = "";
      const both = Promise.withResolvers<void>();
      proxy.onRequest = (request) => {
        sent += request.toString("latin1");
        if ((sent.match(admissionName)?.length ?? 0) === 2) both.resolve();
      };
      proxy.mode = "hold-answers";
      const asking = ask();
      await Promise.race([both.promise, asking]);
      proxy.onRequest = () => undefined;
      proxy.letAnswersGo();
      await (await asking).text();
      if ((sent.match(admissionName)?.length ?? 0) === 2) return sent;
    }
  }

  test.each([
    ["/chat/completions", { tpm: 100_000 }],
    ["/rerank", {}],
    ["/rerank", { tpm: 100_000 }],
    ["/embeddings", {}],
  ] as const)(
    "%s waits once with a key of %j",
    async (path, limits) => {
      const { key: secret } = await createKey([nodes.gateways[0]], limits);
      const sent = await sentBeforeAnswers(() => send(path, { secret }));
      expect(new Set(sent.match(admissionName)).size).toBe(1);
      expect(sent.match(/switchyard:requests:/g)).toHaveLength(1);
      expect(sent.match(/switchyard:tokens:/g) ?? []).toHaveLength("tpm" in limits ? 1 : 0);
    },
    240_000,
  );

  test("a full ceiling of tokens refuses, takes no hold and counts no tokens of an invalid request", async () => {
    const { key: secret } = await createKey([nodes.gateways[0]], { tpm: 2_000 });
    const long = "word ".repeat(1_200);
    const served = await until200(() => send("/chat/completions", { secret }));
    expect(served.status).toBe(200);
    // A machine that stood still makes it a 503, whose tokens may have been counted.
    let wasLate = false;
    const statusOf = async (path: keyof typeof questions, changes: Record<string, unknown>) => {
      const ask = async (): Promise<Response> => {
        const response = await send(path, { secret, changes });
        wasLate ||= response.status === 503;
        return response;
      };
      return (await until200(ask)).status;
    };
    // Each of them would fill the ceiling.
    const messages = [{ role: "user", content: long }];
    for (let count = 0; count < 3; count += 1)
      expect(await statusOf("/chat/completions", { messages, temperature: "hot" })).toBe(400);
    const first = await statusOf("/chat/completions", { messages });
    expect(wasLate ? [200, 429] : [200]).toContain(first);
    expect(await statusOf("/chat/completions", { messages })).toBe(429);
    expect(await statusOf("/rerank", { query: long })).toBe(429);
    expect(await statusOf("/embeddings", { input: long })).toBe(429);
    expect(await statusOf("/chat/completions", { messages, temperature: "hot" })).toBe(400);
  }, 240_000);

  test("a full window refuses before anything else that is wrong", async () => {
    const [gateway] = nodes.gateways;
    const { key } = await createKey([gateway], { rate_limit: 1 });
    const credits = { secret: key };
    const served = await until200(() => postChat(gateway, {}, credits));
    expect(served.headers.get("x-ratelimit-limit")).toBe("1");
    const askedBefore = nodes.upstream.requests.length;
    const refusedFor: Record<string, unknown>[] = [
      {},
      { messages: 5 },
      { model: "acme/unheard-of" },
      { stream: true },
    ];
    for (const changes of refusedFor) {
      const response = await postChat(gateway, changes, credits);
      expect([response.status, response.headers.get("x-ratelimit-limit")]).toEqual([429, "1"]);
      expect(textAt(await response.json(), "error.code")).toBe("rate_limit_exceeded");
    }
    expect(nodes.upstream.requests).toHaveLength(askedBefore);
  }, 240_000);
});

/** The first answer that is not a 503, which a gateway gives while its shared server is away. */
async function until200(ask: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const response = await ask();
    if (response.status !== 503) return response;
    await response.text();
  }
}
