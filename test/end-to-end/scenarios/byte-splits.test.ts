import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import {
  body,
  end,
  head,
  split,
  sse,
  type BodyStep,
  type WireStep,
} from "../../support/upstream/steps.ts";
import { isNightly } from "../../support/nightly.ts";
import { WireWriter } from "../../support/upstream/wire-writer.ts";
import { readReply, saidIn } from "./support/chat-reply.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startScene({ settings: { plans: { enterprise: { perMinute: 100_000 } } } });
});
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

/** Characters of one to four bytes, a joined one, an escape and a line separator. */
const texts = ["aé", "日🇯🇵", "\u{1F468}\u200D\u{1F469}", '"\\\u2028'];

const delta = (fields: Record<string, unknown>, finish: string | null = null): BodyStep =>
  sse({ id: "c", model: "m", choices: [{ index: 0, delta: fields, finish_reason: finish }] });

const events: readonly BodyStep[] = [
  ...texts.map((content) => delta({ content })),
  delta({}, "stop"),
  sse({ id: "c", model: "m", choices: [], usage: { prompt_tokens: 11, completion_tokens: 7 } }),
  sse("[DONE]"),
];
const comment = body(": keep-alive\n\n");
const withLineEnds = (lineEnd: string): BodyStep[] =>
  events.map((event) => body(Buffer.from(event.bytes).toString("utf8").replaceAll("\n", lineEnd)));

/** The same answer in several forms; wherever they are cut must make no difference. */
const forms: Record<string, readonly BodyStep[]> = {
  LF: events,
  "comments between events": [comment, ...events.flatMap((event) => [event, comment])],
  CRLF: withLineEnds("\r\n"),
  "lone CR": withLineEnds("\r"),
  "no blank line at the end": [...events.slice(0, -1), body("data: [DONE]")],
  "event names, ids and retry times": [
    body("retry: 5\n\n"),
    ...events.map((event) =>
      body(`id: 1\nevent: message\n${Buffer.from(event.bytes).toString("utf8")}`),
    ),
  ],
};

/** The answer without what differs from one request to the next. */
const steady = (raw: string): string =>
  raw
    .replace(/"chatcmpl-[0-9a-f]{32}"/g, '"id"')
    // The upstream does not say when it answered, so the gateway's clock does.
    .replace(/"created":\d{10}/g, '"created":0')
    .replace(/"service_metadata":\{.*\}\}/, '"service_metadata":{}}');

async function answerTo(
  steps: readonly WireStep[],
  at: readonly number[] | "every-byte",
): Promise<string> {
  scene.acme.enqueue([split(at, steps)]);
  const reply = await readReply(
    await scene.gateway.post("/chat/completions", chatRequest({ stream: true })),
  );
  expect([reply.status, saidIn(reply), reply.doneCount]).toEqual([200, texts.join(""), 1]);
  return steady(reply.raw);
}

function wireLengthOf(steps: readonly WireStep[]): number {
  const writer = new WireWriter();
  return Buffer.concat(steps.map((step) => writer.encode(step))).length;
}

/** By day the first form is cut at every byte, each other one at every third. */
const formsApart = 3;

describe("a stream is relayed identically at every split of its bytes, including head and framing", () => {
  for (const [place, [name, form]] of Object.entries(forms).entries()) {
    test(name, async () => {
      const steps = [head(), ...form, end()];
      const whole = await answerTo(steps, []);
      expect(await answerTo(steps, "every-byte")).toBe(whole);
      const cuts = Array.from({ length: wireLengthOf(steps) - 1 }, (_, index) => index + 1).filter(
        (cut) => isNightly || place === 0 || cut % formsApart === place % formsApart,
      );
      const answers = await Promise.all(cuts.map((cut) => answerTo(steps, [cut])));
      expect(new Set(answers)).toEqual(new Set([whole]));
    }, 240_000);
  }
});
