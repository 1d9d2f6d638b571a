import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { endProcesses, type GatewayProcess } from "../../support/process.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { chatChunks } from "../../support/upstream/openai-chat-fixtures.ts";
import { end, head, sse, stall } from "../../support/upstream/steps.ts";
import { at, numberAt, textAt } from "../api/at.ts";
import { getJson, postChat } from "../process/support/ask.ts";
import { untilIdle } from "../process/support/expect-nothing-held.ts";
import { chargeIn } from "../process/support/seen-charge.ts";
import { standingBooks } from "../process/support/standing-books.ts";
import { createKey } from "./support/manage.ts";
import { startNodes, type Nodes } from "./support/nodes.ts";
import { until } from "./support/until.ts";

const usage = { prompt_tokens: 25, completion_tokens: 100, total_tokens: 125 };
/** A request of 100 characters that asks for 100 tokens is held and charged alike. */
const costUsd = (25 * 0.5 + 100 * 1.5) / 1e6;
const bodyOf = (content: string) => ({
  model: "acme/large",
  messages: [{ role: "user", content }],
  stream: false,
  max_tokens: 100,
});
const request = (): Record<string, unknown> =>
  bodyOf("x".repeat(100 - JSON.stringify(bodyOf("")).length));

/** Six seconds are meant; it was half a minute while every hold had a lease of its own. */
const patienceMs = 50_000;

describe.skipIf(!hasRedis)(`a gateway that fails while another continues${redisMissing}`, () => {
  let nodes: Nodes;
  /** The two that run; a killed one is replaced. */
  let running: [GatewayProcess, GatewayProcess];
  beforeAll(async () => {
    nodes = await startNodes();
    running = [...nodes.gateways];
  }, 240_000);
  afterAll(async () => {
    await endProcesses();
    await nodes.stop();
  });

  const books = () => standingBooks({ options: {}, query: nodes.query });

  /**
   * Asks ten times a second at most, so that no rate limit answers in the place of what is asked.
   */
  const untilAsked = (isSo: () => Promise<boolean>, what: string): Promise<void> =>
    until(async () => (await isSo()) || Bun.sleep(100).then(() => false), { patienceMs, what });

  /** How many milliseconds it takes until something is so. */
  async function millisecondsUntil(isSo: () => Promise<boolean>, what: string): Promise<number> {
    const beganMs = performance.now();
    await untilAsked(isSo, what);
    return performance.now() - beganMs;
  }

  test("killed: the rest of a limit is available at once, its holds soon, and the books are exact", async () => {
    const [killed, other] = running;
    const { key } = await createKey(running, { limit: 3 * costUsd });
    const asked = nodes.upstream.requests.length;
    const gate = nodes.upstream.gate();
    nodes.upstream.script(() => [gate, stall()]);
    const lost = [0, 1].map(() =>
      postChat(killed, request(), { secret: key }).then((answer) => answer.text(), String),
    );
    await nodes.upstream.waitForRequest(asked + 2);
    nodes.upstream.script((each) => chatAnswer(each, { usage }));
    await killed.kill9();
    await Promise.all(lost);
    const ask = async (): Promise<Response> => postChat(other, request(), { secret: key });
    const rest = await ask();
    expect([rest.status, chargeIn(await rest.text())]).toMatchObject([
      200,
      [{ costNano: 162_500n }],
    ]);
    const tookMs = await millisecondsUntil(async () => {
      const response = await ask();
      await response.text();
      return response.status === 200;
    }, "what the killed gateway held is free");
    console.log(`what a killed gateway held was free after ${Math.round(tookMs)} ms`);
    expect((await ask()).status).toBe(200);
    expect((await ask()).status).toBe(402);
    expect((await books()).charges.size).toBe(3);
    running = [await nodes.start(), other];
  }, 240_000);

  test("killed: a background response continues at the other gateway and is charged once", async () => {
    const [killed, other] = running;
    const charged = (await books()).charges.size;
    const chunks = chatChunks({ usageOn: "after" }).map((chunk) => sse(chunk));
    const gate = nodes.upstream.gate();
    nodes.upstream.script(() => [head(), ...chunks.slice(0, 2), gate, stall()]);
    const headers = { authorization: `Bearer ${testLlmKey}`, "content-type": "application/json" };
    const made: unknown = await (
      await fetch(`${killed.url}/v1/responses`, {
        method: "POST",
        headers,
        body: JSON.stringify({ model: "acme/large", input: "Hello", background: true }),
      })
    ).json();
    await gate.reached;
    nodes.upstream.script(() => [head(), ...chunks, sse("[DONE]"), end()]);
    await killed.kill9();
    const tookMs = await millisecondsUntil(
      async () =>
        at(await getJson(other, `/responses/${textAt(made, "id")}`), "status") === "completed",
      "it is completed",
    );
    console.log(
      `a background response of a killed gateway was completed after ${Math.round(tookMs)} ms`,
    );
    await untilIdle(other);
    expect((await books()).charges.size).toBe(charged + 1);
    running = [await nodes.start(), other];
  }, 240_000);

  test("suspended beyond its lease: its responses continue afterwards, and the books are exact", async () => {
    const [suspended, other] = running;
    const { key } = await createKey(running, { limit: 2 * costUsd });
    const asked = nodes.upstream.requests.length;
    const gate = nodes.upstream.gate();
    nodes.upstream.script((each) => [gate, ...chatAnswer(each, { usage })]);
    const answer = postChat(suspended, request(), { secret: key }).then(
      (response) => response.text(),
      String,
    );
    await nodes.upstream.waitForRequest(asked + 1);
    nodes.upstream.script((each) => chatAnswer(each, { usage }));
    suspended.child.kill("SIGSTOP");
    const ask = async (gateway: GatewayProcess): Promise<number> => {
      const response = await postChat(gateway, request(), { secret: key });
      await response.text();
      return response.status;
    };
    expect(await ask(other)).toBe(200);
    // It counts as dead once the other is given what it held.
    await untilAsked(
      async () => (await ask(other)) === 200,
      "what the suspended gateway held is free",
    );
    suspended.child.kill("SIGCONT");
    gate.open();
    await answer;
    await untilAsked(async () => (await ask(suspended)) === 402, "it serves again");
    await Promise.all(running.map(untilIdle));
    /** Balances are shown in millionths of a dollar. */
    const isBalanceOfBooks = async (gateway: GatewayProcess): Promise<boolean> => {
      const shown = numberAt(await getJson(gateway, "/credits"), "balance");
      return Math.abs(shown * 1e6 - Number((await books()).balanceNano) / 1e3) < 1;
    };
    for (const gateway of running) {
      // Valkey learns of the late charge once the suspended gateway is connected to it again.
      await untilAsked(() => isBalanceOfBooks(gateway), "the balance is that of the books");
      expect(at(await getJson(gateway, "/key", key), "data.limit_remaining")).toBe(0);
    }
  }, 240_000);
});
