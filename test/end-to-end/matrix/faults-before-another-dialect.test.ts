import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json, stream } from "../../support/upstream/steps.ts";
import { wireEvents } from "../../support/upstream/upstream-wire.ts";
import { fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import {
  providerId,
  providerUnder,
  startMatrix,
  type MatrixScene,
} from "./support/matrix-scene.ts";
import {
  encountersWith,
  meetFaults,
  titleOf,
  type Encounter,
  type Outcome,
} from "./support/meet-faults.ts";
import { allPairs, nameOf, upstreams } from "./support/pairs.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

/** The dialect of the provider that comes next: always another one. */
const nextDialect = (dialect: DialectId): DialectId =>
  upstreams[(upstreams.indexOf(dialect) + 1) % upstreams.length] ?? dialect;

/** The request itself is at fault, so no other provider would do better. */
const isFinal = ({ name }: Encounter): boolean => name === "400";

/**
 * One encounter of each kind of failure: the whole table stands before a backup of the same dialect
 * in scenarios/.
 */
const chosen = ({ name, fault: { effect } }: Encounter): boolean =>
  effect === "after-content" ||
  [
    "connection refused",
    "never answers",
    "resets before answering",
    "cut in the body",
    "bad JSON body",
    "400",
    "401",
    "404",
    "429",
    "503",
    "502 as HTML",
    "cut before content",
    "stall before content",
    "empty stream",
    "200, then an error first",
    "200 with an error as JSON",
  ].includes(name);

describe.each(allPairs.map((pair) => [nameOf(pair), pair] as const))(
  "%s, before a provider of another dialect",
  (_, pair) => {
    const next = nextDialect(pair.upstream);
    const backup = providerId(next);
    let outcomes: Map<string, Outcome>;
    beforeAll(async () => {
      const wire = wireOf(next);
      scene.upstreams[next].script((request) =>
        request.path.includes("streamGenerateContent") || request.body.includes('"stream":true')
          ? stream(wireEvents(wire))
          : json(wire.whole),
      );
      outcomes = await meetFaults(scene, pair, { backups: [backup], chosen });
    });

    for (const encounter of encountersWith(pair.upstream).filter(chosen)) {
      const title = titleOf(encounter);
      const first = providerUnder(pair.upstream, encounter.fault);
      if (encounter.fault.effect === "after-content") {
        test(`after content no other provider is asked: ${title}`, () => {
          const { reply, row } = outcomes.get(title) ?? {};
          expect([reply?.errors.length, reply?.endings, reply?.breaches]).toEqual([1, 0, []]);
          expect([
            reply?.headers.get("x-service-provider-chain"),
            row?.provider,
            row?.status,
          ]).toEqual([first, first, "cut"]);
        });
      } else if (isFinal(encounter)) {
        test(`an invalid request is not retried: ${title}`, () => {
          const { reply, row } = outcomes.get(title) ?? {};
          expect([reply?.status, reply?.errors[0]?.metadata.upstream_backend, row]).toEqual([
            400,
            first,
            undefined,
          ]);
          expect(reply?.headers.get("x-should-retry")).toBe("false");
        });
      } else {
        test(`the next provider answers without an error for the client: ${title}`, () => {
          const { reply, row } = outcomes.get(title) ?? {};
          expect([
            reply?.status,
            reply?.said,
            reply?.errors,
            reply?.endings,
            reply?.breaches,
          ]).toEqual([200, fixtureText, [], 1, []]);
          expect(reply?.headers.get("x-service-provider-chain")).toBe(`${first}->${backup}`);
          expect(row).toMatchObject({ provider: backup, status: "completed", costNano: 16_000n });
          expect(row?.detail.attempts).toMatchObject([
            { provider: first, outcome: "failed" },
            { provider: backup, outcome: "served" },
          ]);
        });
      }
    }
  },
);
