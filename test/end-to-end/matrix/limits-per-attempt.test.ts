import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import { json, stream } from "../../support/upstream/steps.ts";
import { wireEvents } from "../../support/upstream/upstream-wire.ts";
import { createKey } from "../scenarios/support/create-key.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { addressOf } from "./support/client-dialect.ts";
import { allPairs, nameOf, upstreams, type Pair } from "./support/pairs.ts";
import { readReply, type Reply } from "./support/reply.ts";

/** A model that costs nothing, at a provider that always fails, in each dialect. */
const freeIn = (dialect: DialectId): string => `free/${dialect}:free`;
/**
 * A model that costs 1.00 and 3.00 USD per million tokens, at a provider that always serves, in
 * each dialect.
 */
const paidIn = (dialect: DialectId): string => `paid/${dialect}`;

const nextDialect = (dialect: DialectId): DialectId =>
  upstreams[(upstreams.indexOf(dialect) + 1) % upstreams.length] ?? dialect;

let gateway: TestGateway;
const started = new Map<string, FaultUpstream>();
let exhausted = "";

beforeAll(async () => {
  const providers = [];
  for (const dialect of upstreams) {
    const [first, backup] = await Promise.all([startFaultUpstream(), startFaultUpstream()]);
    const wire = wireOf(dialect);
    first.script(json(wire.errorBody(503), { status: 503 }));
    backup.script(({ path, body }) =>
      path.includes("streamGenerateContent") || body.includes('"stream":true')
        ? stream(wireEvents(wire))
        : json(wire.whole),
    );
    started.set(`${dialect}-first`, first).set(`${dialect}-backup`, backup);
    const entry = { dialect, api_key: "k" };
    providers.push(
      provider({
        ...entry,
        id: `${dialect}-first`,
        base_url: first.baseUrl,
        models: [{ id: freeIn(dialect) }],
      }),
      provider({
        ...entry,
        id: `${dialect}-backup`,
        base_url: backup.baseUrl,
        models: [{ id: paidIn(dialect), pricing: { prompt: "1.00", completion: "3.00" } }],
      }),
    );
  }
  gateway = await startGateway({ providers, plans: { enterprise: { perMinute: 1_000_000 } } });
  exhausted = await createKey(gateway, { limit: 0 });
});

afterAll(async () => {
  try {
    await expectSoundBooks(gateway);
  } finally {
    await gateway.stop();
    for (const upstream of started.values()) upstream.stop();
  }
});

/**
 * Asks for the free model with the paid one behind it; gives the answer, and how often the paid one
 * was asked.
 */
async function ask(
  { client, upstream }: Pair,
  { secret = testLlmKey, streamed = false },
): Promise<{ reply: Reply; paidAsked: number }> {
  const backup = started.get(`${nextDialect(upstream)}-backup`);
  const before = backup?.requests.length ?? 0;
  const { path, body } = addressOf(client, {
    ...client.ask("Hello"),
    model: freeIn(upstream),
    models: [paidIn(nextDialect(upstream))],
    stream: streamed,
  });
  const reply = await readReply(
    client,
    await gateway.post(path, body, { headers: { authorization: `Bearer ${secret}` } }),
  );
  return { reply, paidAsked: (backup?.requests.length ?? 0) - before };
}

describe.each(allPairs.map((pair) => [nameOf(pair), pair] as const))(
  "R17, %s: a free model fails",
  (_, pair) => {
    const next = nextDialect(pair.upstream);

    test.each([false, true])(
      "with credits, falls back to a paid model in another dialect, reported and charged (streamed: %p)",
      async (streamed) => {
        const { reply, paidAsked } = await ask(pair, { streamed });
        expect([reply.status, reply.said, paidAsked, reply.costUsd, reply.breaches]).toEqual([
          200,
          fixtureText,
          1,
          0.000032,
          [],
        ]);
        expect(reply.headers.get("x-service-fallback-reason")).toBe("upstream_error");
        expect(reply.headers.get("x-service-requested-model")).toBe(freeIn(pair.upstream));
        expect(reply.headers.get("x-service-model")).toBe(paidIn(next));
        expect(reply.raw).toContain(`"requested_model":"${freeIn(pair.upstream)}"`);
        expect(reply.raw).toContain(
          '"fallback":{"used":true,"reason":"upstream_error","attempts":[',
        );
      },
    );

    test("on a key at its limit, the paid model is not asked", async () => {
      const { reply, paidAsked } = await ask(pair, { secret: exhausted });
      expect([reply.status, paidAsked, reply.errors[0]?.metadata.fault, reply.breaches]).toEqual([
        502,
        0,
        "upstream",
        [],
      ]);
    });

    test("on a key that may use only the free model, no provider is asked", async () => {
      const secret = await createKey(gateway, { allowed_models: [freeIn(pair.upstream)] });
      const { reply, paidAsked } = await ask(pair, { secret });
      expect([reply.status, paidAsked, reply.errors[0]?.metadata.fault, reply.breaches]).toEqual([
        403,
        0,
        "client",
        [],
      ]);
    });
  },
);
