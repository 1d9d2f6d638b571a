import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import {
  usageFixtures,
  type StreamedChatAnswer,
  type UsageFixtureName,
} from "../../support/upstream/openai-chat-fixtures.ts";
import { at } from "./support/at.ts";
import { costsIn, readReply, type ChatReply } from "./support/chat-reply.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";
import { settledRow, type SettledRow } from "./support/settled-rows.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startScene({
    acme: {
      models: [
        {
          id: "acme/large",
          upstream_model: "large-v2",
          context_length: 1_000,
          pricing: {
            prompt: "0.50",
            completion: "1.50",
            cache_read: "0.05",
            cache_write: "0.60",
            reasoning: "2",
            audio: "4",
            image: "3",
          },
        },
      ],
    },
  });
});
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

/**
 * What a provider's report comes to: disjoint counts, the charge in nano-USD, and how far it is
 * trusted.
 */
interface Expected {
  usage: Record<string, number>;
  costNano: number;
  trust?: "clamped" | "estimated";
}

/**
 * 500, 1,500, 50, 600, 2,000, 4,000 and 3,000 nano-USD per token of input, output, cache read,
 * write, reasoning, audio and image.
 */
const expected: Record<UsageFixtureName, Expected> = {
  plain: { usage: { inputTokens: 11, outputTokens: 7 }, costNano: 11 * 500 + 7 * 1_500 },
  cached: {
    usage: { inputTokens: 10, cacheReadTokens: 100, cacheWriteTokens: 20, outputTokens: 7 },
    costNano: 5_000 + 5_000 + 12_000 + 10_500,
  },
  reasoning: {
    usage: { inputTokens: 11, outputTokens: 7, reasoningTokens: 63 },
    costNano: 5_500 + 10_500 + 126_000,
  },
  audio: {
    usage: {
      inputTokens: 15,
      cacheReadTokens: 0,
      inputAudioTokens: 30,
      inputImageTokens: 5,
      outputTokens: 15,
      reasoningTokens: 0,
      outputAudioTokens: 25,
    },
    costNano: 7_500 + 120_000 + 15_000 + 22_500 + 25 * 1_500,
  },
  zero: { usage: { inputTokens: 0, outputTokens: 0 }, costNano: 0 },
  priced: { usage: { inputTokens: 11, outputTokens: 7 }, costNano: 16_000 },
  negative: { usage: { inputTokens: 0, outputTokens: 0 }, costNano: 0, trust: "clamped" },
  huge: {
    usage: { inputTokens: 1_000, outputTokens: 1_000 },
    costNano: 500_000 + 1_500_000,
    trust: "clamped",
  },
  strings: { usage: {}, costNano: 0, trust: "estimated" },
  fractions: { usage: { inputTokens: 12, outputTokens: 7 }, costNano: 16_500, trust: "clamped" },
  nulls: { usage: {}, costNano: 0, trust: "estimated" },
  empty: { usage: {}, costNano: 0, trust: "estimated" },
  text: { usage: {}, costNano: 0, trust: "estimated" },
  contradictory: {
    usage: { inputTokens: 0, cacheReadTokens: 10, outputTokens: 0, reasoningTokens: 5 },
    costNano: 500 + 10_000,
    trust: "clamped",
  },
  promptOnly: { usage: { inputTokens: 11 }, costNano: 0, trust: "estimated" },
  completionOnly: { usage: { outputTokens: 7 }, costNano: 0, trust: "estimated" },
  missing: { usage: {}, costNano: 0, trust: "estimated" },
};

/** Where a provider may put its usage. */
const places: readonly (readonly [
  place: string,
  body: Record<string, unknown>,
  answer: StreamedChatAnswer,
])[] = [
  ["whole", {}, {}],
  ["stream, usage after the finish", { stream: true }, { usageOn: "after" }],
  ["stream, usage on the finish", { stream: true }, { usageOn: "finish" }],
  ["stream, usage on every chunk", { stream: true }, { usageOn: "every" }],
  [
    "stream, the client requested usage",
    { stream: true, stream_options: { include_usage: true } },
    { usageOn: "after" },
  ],
  [
    "stream, the client disabled usage",
    { stream: true, stream_options: { include_usage: false } },
    { usageOn: "after" },
  ],
];

async function ask(
  body: Record<string, unknown>,
  answer: StreamedChatAnswer,
): Promise<{ reply: ChatReply; row: SettledRow | undefined }> {
  scene.acme.script((request) => chatAnswer(request, answer));
  const reply = await readReply(await scene.gateway.post("/chat/completions", chatRequest(body)));
  return { reply, row: await settledRow(scene.gateway, reply.headers.get("x-service-trace-id")) };
}

const sum = (usage: Record<string, number | undefined>, side: RegExp): number =>
  Object.entries(usage).reduce(
    (total, [part, count]) => total + (side.test(part) ? (count ?? 0) : 0),
    0,
  );

for (const name of Object.keys(expected) as UsageFixtureName[]) {
  describe(`usage ${name}`, () => {
    const { usage, costNano, trust } = expected[name];
    for (const [place, body, answer] of places) {
      test(place, async () => {
        const { reply, row } = await ask(body, { ...answer, usage: usageFixtures[name] });
        const shown = reply.events
          .map((event) => at(event, "usage"))
          .filter((each) => at(each, "cost") !== undefined);
        expect(reply.status).toBe(200);
        expect([row?.detail.usageClamped === true, row?.detail.usageEstimated === true]).toEqual([
          trust === "clamped",
          trust === "estimated",
        ]);
        if (trust !== "estimated") {
          expect(row?.detail.usage).toEqual(usage);
          expect(Number(row?.costNano)).toBe(costNano);
        } else {
          expect(row?.detail.usage).toMatchObject(usage);
          expect(row?.promptTokens).toBeGreaterThan(0);
          expect(row?.completionTokens).toBeGreaterThan(0);
        }
        // One vector: its parts add up to what is shown and recorded, and the charge is shown once.
        expect(sum(row?.detail.usage ?? {}, /^(input|cache)/)).toBe(row?.promptTokens ?? -1);
        expect(sum(row?.detail.usage ?? {}, /^(output|reasoning)/)).toBe(
          row?.completionTokens ?? -1,
        );
        expect(Number(row?.costNano)).toBeGreaterThanOrEqual(0);
        expect(costsIn(reply)).toEqual([Number(row?.costNano) / 1e9]);
        expect(shown).toMatchObject([
          { prompt_tokens: row?.promptTokens, completion_tokens: row?.completionTokens },
        ]);
      });
    }
  });
}
