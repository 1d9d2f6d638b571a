import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json, stream, body as bodyBytes, type Script } from "../../support/upstream/steps.ts";
import { fieldsOf, type Fields } from "../matrix/support/json-value.ts";
import {
  providerId,
  routed,
  startMatrix,
  type MatrixScene,
} from "../matrix/support/matrix-scene.ts";
import { addressOf } from "../matrix/support/client-dialect.ts";
import { allClients, upstreams } from "../matrix/support/pairs.ts";
import { readReply } from "../matrix/support/reply.ts";
import { mutated, mutation } from "./support/mutations.ts";
import { fuzzRuns, fuzzSeed, fuzzTimeoutMs } from "./support/runs.ts";
import { goodAnswers, goodRequests, goodStreams } from "./support/seeds.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

/** Requests at a time; as many as a busy client has. */
const together = 16;

/** One request and what its upstream makes of it. */
interface Case {
  body: string | Fields;
  upstream: DialectId;
  streamed: boolean;
  answer: Script;
}

const answerTo = (upstream: DialectId, streamed: boolean): fc.Arbitrary<Script> => {
  const wholes = goodAnswers(upstream);
  const streams = goodStreams(upstream);
  const whole = fc
    .tuple(fc.nat(wholes.length - 1), fc.array(mutation, { maxLength: 3 }))
    .map(([seed, mutations]) => json(mutations.reduce(mutated, wholes[seed] as unknown)));
  const events = fc
    .tuple(
      fc.nat(streams.length - 1),
      fc.array(fc.tuple(fc.nat(40), fc.string()), { maxLength: 2 }),
    )
    .map(([seed, changes]) => {
      const texts = [...(streams[seed] ?? [])];
      for (const [at, text] of changes) texts[at % texts.length] = `data: ${text}\n\n`;
      return stream(texts.map((text) => bodyBytes(text)));
    });
  return streamed
    ? fc.oneof({ weight: 4, arbitrary: events }, { weight: 1, arbitrary: whole })
    : whole;
};

const bodies = (requests: readonly Fields[]): fc.Arbitrary<string | Fields> =>
  fc.oneof(
    {
      weight: 1,
      arbitrary: fc.oneof(
        fc.string(),
        fc.jsonValue().map((value) => JSON.stringify(value)),
        fc.constant("[".repeat(50_000)),
      ),
    },
    {
      weight: 6,
      arbitrary: fc
        .tuple(fc.nat(requests.length - 1), fc.array(mutation, { maxLength: 4 }))
        .map(([seed, mutations]) => fieldsOf(mutations.reduce(mutated, requests[seed] as unknown))),
    },
  );

const cases = (requests: readonly Fields[]): fc.Arbitrary<Case> =>
  fc
    .record({ upstream: fc.constantFrom(...upstreams), streamed: fc.boolean() })
    .chain(({ upstream, streamed }) =>
      fc
        .record({ body: bodies(requests), answer: answerTo(upstream, streamed) })
        .map((made) => ({ ...made, upstream, streamed })),
    );

describe("any request and provider response over HTTP causes no 500 and no hang, and keeps the books exact", () => {
  test.each(allClients.map((client) => [client.name, client] as const))(
    "%s",
    async (_, client) => {
      const waiting = fc.sample(cases(goodRequests(client.name)), {
        seed: fuzzSeed,
        numRuns: Math.min(fuzzRuns(900), 20_000),
      });
      const statuses = new Map<number, number>();
      const one = async ({ body, upstream, streamed, answer }: Case): Promise<void> => {
        scene.upstreams[upstream].enqueue(answer);
        const sent =
          typeof body === "string"
            ? { path: client.path, body }
            : addressOf(client, routed({ ...body, stream: streamed }, [providerId(upstream)]));
        const response = await scene.gateway.post(sent.path, sent.body, {
          signal: AbortSignal.timeout(20_000),
        });
        const reply = await readReply(client, response);
        statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
        if (reply.status === 500) throw new Error(`500 for ${JSON.stringify(sent)}: ${reply.raw}`);
        if (reply.status !== 200) expect([reply.errors.length, reply.breaches]).toEqual([1, []]);
      };
      const work = async (): Promise<void> => {
        for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) await one(next);
      };
      await Promise.all(Array.from({ length: together }, work));
      expect([...statuses.keys()].toSorted()).toEqual(expect.arrayContaining([200, 400, 502]));
      const failures = scene.gateway.logLines.filter(
        (line) => line.includes('"level":"error"') || line.includes('"level":50'),
      );
      expect(failures).toEqual([]);
    },
    fuzzTimeoutMs,
  );
});
