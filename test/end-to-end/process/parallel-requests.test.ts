import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { testManagementKey } from "../../support/gateway.ts";
import { hostGateway } from "../../support/hosted-gateway.ts";
import { endProcesses, startProcess } from "../../support/process.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, numberAt, textAt } from "../api/at.ts";
import { type AskedGateway, getJson, postChat } from "./support/ask.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { expectNothingHeld, untilIdle } from "./support/expect-nothing-held.ts";
import { chargeIn } from "./support/seen-charge.ts";
import { expectToStand, standingBooks } from "./support/standing-books.ts";
import { stores } from "./support/stores.ts";

afterAll(endProcesses);

const requestCount = 200;
const affordable = 10;

/**
 * What each request costs to the nano-dollar, held and charged alike: its body is 100 characters
 * and it asks for 100 tokens.
 */
const bodyLength = 100;
const usage = {
  prompt_tokens: bodyLength / 4,
  completion_tokens: 100,
  total_tokens: bodyLength / 4 + 100,
};
const costNano = BigInt(usage.prompt_tokens * 500 + usage.completion_tokens * 1_500);
const allUsd = Number(costNano * BigInt(affordable)) / 1e9;

/** A chat request whose JSON has `bodyLength` characters. */
function request(stream: boolean): Record<string, unknown> {
  const body = (content: string) => ({
    model: "acme/large",
    messages: [{ role: "user", content }],
    stream,
    max_tokens: 100,
  });
  return body("x".repeat(bodyLength - JSON.stringify(body("")).length));
}

interface Answer {
  status: number;
  text: string;
}

/** @see https://github.com/BerriAI/litellm/issues/34732 */
describe.each([...stores])(`${requestCount} parallel requests on $name`, ({ open }) => {
  let upstream: FaultUpstream;
  beforeEach(async () => {
    upstream = await startFaultUpstream();
    upstream.script((each) => chatAnswer(each, { usage }));
  });
  afterEach(() => upstream.stop());

  /**
   * Sends all of them before any is answered, and lets the provider answer once all others are
   * refused.
   */
  async function sendAll(gateway: AskedGateway, secret: string): Promise<Answer[]> {
    const gate = upstream.gate();
    upstream.script((each) => [gate, ...chatAnswer(each, { usage })]);
    const { promise: restIsRefused, resolve } = Promise.withResolvers<void>();
    let refused = 0;
    const sent = Array.from({ length: requestCount }, async (_, index): Promise<Answer> => {
      const response = await postChat(gateway, request(index % 2 === 0), { secret });
      if (response.status !== 200 && (refused += 1) >= requestCount - affordable) resolve();
      return { status: response.status, text: await response.text() };
    });
    await Promise.race([restIsRefused, Promise.all(sent)]);
    gate.open();
    return Promise.all(sent);
  }

  const prepare = async (credits: number) => {
    const store = await open();
    const options = {
      ...store.options,
      yaml: acmeYaml(upstream.baseUrl),
      environment: {
        ...bootstrapVariables,
        ...store.options.environment,
        SWITCHYARD_BOOTSTRAP_CREDITS: credits.toFixed(9),
      },
    };
    return { options, store };
  };

  const host = async (credits: number) => {
    const { options, store } = await prepare(credits);
    return { gateway: await hostGateway(options), store };
  };

  function expectTenServed(answers: readonly Answer[]): Answer[] {
    const served = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(served).toHaveLength(affordable);
    expect(upstream.requests).toHaveLength(affordable);
    expect(
      refused.filter(
        ({ status, text }) => status !== 402 || at(JSON.parse(text), "error.code") === undefined,
      ),
    ).toEqual([]);
    for (const { text } of served) expect(chargeIn(text)).toMatchObject([{ costNano }]);
    return served;
  }

  test("against a balance for ten: ten are served, and nothing is left or owed", async () => {
    const { gateway, store } = await host(allUsd);
    const served = expectTenServed(
      await sendAll(gateway, bootstrapVariables.SWITCHYARD_BOOTSTRAP_LLM_KEY),
    );
    expect((await postChat(gateway, request(false))).status).toBe(402);
    expect(await getJson(gateway, "/credits")).toMatchObject({
      balance: 0,
      used: Number(allUsd.toFixed(6)),
    });
    await gateway.stop();
    const books = await standingBooks(store);
    expectToStand(
      served.flatMap(({ text }) => chargeIn(text)),
      books,
    );
    expect([books.charges.size, books.balanceNano]).toEqual([affordable, 0n]);
    expect(await store.query("select id from transfers where kind = 'uncollected'")).toEqual([]);
  });

  test("against a key's limit for ten: ten are served, and the workspace keeps the rest", async () => {
    const { gateway, store } = await host(1);
    const created = await fetch(`${gateway.url}/api/v1/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "for ten", limit: allUsd }),
    });
    const secret = textAt(await created.json(), "key");
    expectTenServed(await sendAll(gateway, secret));
    expect((await postChat(gateway, request(false), { secret })).status).toBe(402);
    expect(numberAt(await getJson(gateway, "/key", secret), "data.usage")).toBeCloseTo(allUsd, 9);
    expect((await postChat(gateway, request(false))).status).toBe(200);
    await gateway.stop();
    const books = await standingBooks(store);
    expect([books.charges.size, books.balanceNano]).toEqual([
      affordable + 1,
      1_000_000_000n - costNano * BigInt(affordable + 1),
    ]);
  });

  test("of clients that leave: charges that were shown are stored, and no hold is left", async () => {
    const { options, store } = await prepare(1);
    // In a process of its own, it meets clients that have left before it reads what they sent.
    const gateway = await startProcess(options);
    const sent = Array.from({ length: requestCount }, async (_, index) => {
      const leaving = new AbortController();
      const answer = postChat(gateway, request(index % 2 === 0), { signal: leaving.signal });
      if (index % 3 === 0) leaving.abort();
      else if (index % 3 === 1) setImmediate(() => leaving.abort());
      return answer.then((response) => response.text()).catch(() => "");
    });
    const shown = (await Promise.all(sent)).flatMap((text) =>
      text.includes('"cost"') ? chargeIn(text) : [],
    );
    // What a client sent before it left is read, admitted and ended after that.
    await untilIdle(gateway);
    const { balanceNano } = await standingBooks(store);
    const last = await expectNothingHeld(gateway, balanceNano);
    expect(await gateway.terminate()).toBe(0);
    expectToStand([...shown, last], await standingBooks(store));
  });
});
