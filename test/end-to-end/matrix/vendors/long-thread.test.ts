import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedAnswer } from "../../../support/scripted-upstream/scripted-answer.ts";
import { isNightly } from "../../../support/nightly.ts";
import type { VendorId } from "../../../support/strict-vendors/rule.ts";
import { addressOf, type ClientDialect } from "../support/client-dialect.ts";
import type { Fields } from "../support/json-value.ts";
import { allClients } from "../support/pairs.ts";
import { readReply, type Reply } from "../support/reply.ts";
import { requestWith, turnsOf } from "../support/turns.ts";
import { startStrictScene, type StrictScene } from "./strict-scene.ts";

let scene: StrictScene;
beforeAll(async () => {
  scene = await startStrictScene();
});
afterAll(() => scene.end());

/** A vendor of each kind of upstream: the five dialects, and chat without and with strict ids. */
const vendors = [
  ["anthropic", "claude-sonnet-4-6"],
  ["openai", "gpt-5.5"],
  ["google", "gemini-3-flash-preview"],
  ["amazon-bedrock", "us.amazon.nova-2-lite-v1:0"],
  ["deepseek", "deepseek-v4-pro"],
  ["mistral", "mistral-large-latest"],
] as const satisfies readonly (readonly [VendorId, string])[];

type Vendor = (typeof vendors)[number];

/** How often a conversation makes every move from a vendor to a vendor. */
const rounds = isNightly ? 4 : 2;

/** The vendor of each turn: each of the 36 moves, staying included, once a round (de Bruijn). */
const seats: readonly Vendor[] = Array.from({ length: rounds }, () =>
  vendors.flatMap((vendor, index) => [
    vendor,
    ...vendors.slice(index + 1).flatMap((other) => [vendor, other]),
  ]),
).flat();

const sealOf = ([vendor]: Vendor, turn: number): string =>
  Buffer.from(`sealed by ${vendor} in turn ${turn}`).toString("base64");

/** Returns the answer of a turn: a call with words, two calls at once, then words alone. */
function answerOf(vendor: Vendor, turn: number): ScriptedAnswer {
  const call = (which: string) => ({
    id: `call_${turn}_${which}`,
    name: "look",
    arguments: { at: `place ${turn} ${which}` },
  });
  const reasoning = { text: `Thought ${turn}.`, signature: sealOf(vendor, turn) };
  switch (turn % 3) {
    case 0:
      return { reasoning, text: [`Words `, `${turn}.`], calls: [call("a")] };
    case 1:
      return { reasoning, calls: [call("a"), call("b")] };
    default:
      return { reasoning, text: [`Words `, `${turn}.`] };
  }
}

async function ask(
  client: ClientDialect,
  [vendor, model]: Vendor,
  { turns, stream }: { turns: readonly Fields[]; stream: boolean },
): Promise<Reply> {
  const asked = { ...requestWith(client, turns), model: scene.idOf(vendor, model), stream };
  const { path, body } = addressOf(client, asked);
  return readReply(client, await scene.ask(path, body, vendor));
}

describe.each(allClients.map((client) => [client.name, client] as const))(
  `a conversation of ${seats.length} turns in %s`,
  (_, client) => {
    test("makes every move between six kinds of upstream, whole and streamed", async () => {
      scene.upstream.forget();
      const { upstream } = scene;
      const writer = turnsOf(client);
      const turns: Fields[] = [writer.user("Question 0?")];
      for (const [turn, seat] of seats.entries()) {
        const { text = [], calls = [] } = answerOf(seat, turn);
        upstream.say(answerOf(seat, turn));
        const reply = await ask(client, seat, { turns, stream: turn % 2 === 1 });
        expect([turn, ...upstream.refusals.flatMap(({ rules }) => rules)]).toEqual([turn]);
        expect([turn, reply.status, reply.endings, reply.breaches]).toEqual([turn, 200, 1, []]);
        expect([turn, reply.said]).toEqual([turn, text.join("")]);
        expect(reply.calls.map((call) => JSON.parse(call.arguments) as unknown)).toEqual(
          calls.map((call) => call.arguments),
        );
        expectForeignSealsKept(turn);
        turns.push(...writer.answered(reply.body));
        if (calls.length > 0) turns.push(...writer.results(reply.calls, `seen in turn ${turn}.`));
        else turns.push(writer.user(`Question ${turn + 1}?`));
      }
      expect(upstream.received).toHaveLength(seats.length);
      const last = JSON.stringify(upstream.received.at(-1)?.body);
      const missing = seats.slice(0, -1).flatMap((seat, turn) => {
        const { text = [], calls = [] } = answerOf(seat, turn);
        const said = text.length > 0 ? [text.join("")] : [];
        const results = calls.length > 0 ? [`seen in turn ${turn}.`] : [`Question ${turn + 1}?`];
        const asked = calls.map(({ arguments: { at } }) => String(at));
        return [...said, ...asked, ...results].filter((part) => !last.includes(part));
      });
      expect(missing).toEqual([]);
    });

    /** Checks that the request of a turn has no seal of another vendor, and the own one before it. */
    function expectForeignSealsKept(turn: number): void {
      const seat = seats[turn];
      const sent = JSON.stringify(scene.upstream.received.at(-1)?.body);
      // The turns before it have every vendor's seals; those before them were looked for already.
      const from = Math.max(0, turn - 2 * vendors.length);
      const foreign = seats
        .slice(from, turn)
        .filter((maker, index) => maker !== seat && sent.includes(sealOf(maker, from + index)));
      expect([turn, foreign]).toEqual([turn, []]);
    }
  },
);
