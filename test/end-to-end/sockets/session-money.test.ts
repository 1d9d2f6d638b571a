import "../../support/property-seed.ts";
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { startRealtimeUpstream, type RealtimeUpstream } from "./support/realtime-upstream.ts";
import { SocketClient } from "./support/socket-client.ts";

let upstream: RealtimeUpstream;
let gateway: TestGateway;

/** Nano-USD of a token, and of a millisecond of sound that is transcribed. */
const nano = { text: 4_000, audio: 32_000, cachedText: 400, cachedAudio: 500, outText: 24_000 };
const outAudioNano = 64_000;
const soundNano = 100;

beforeAll(async () => {
  upstream = startRealtimeUpstream();
  gateway = await startGateway({
    providers: [
      provider({
        id: "acme",
        base_url: upstream.baseUrl,
        dialect: { realtime: "openai-realtime", transcriptions: "openai-audio" },
        api_key: "upstream-secret",
        models: [
          {
            id: "acme/voice",
            upstream_model: "gpt-realtime-up",
            surface: "realtime",
            pricing: {
              ...{ prompt: "4", completion: "24", cache_read: "0.4" },
              ...{ audio_input: "32", audio_output: "64", audio_cache_read: "0.5" },
            },
          },
          {
            id: "acme/whisper",
            upstream_model: "whisper-up",
            surface: "transcriptions",
            pricing: { audio_input_minute: "0.006" },
          },
        ],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

/** What a client does in a session. */
type Step =
  | { do: "say"; characters: number }
  | { do: "sound"; milliseconds: number }
  | { do: "transcribe" }
  | { do: "respond"; tokens: readonly [number, number, number, number, number, number] }
  | { do: "leave" };

const count = fc.integer({ min: 0, max: 400 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("say" as const), characters: fc.integer({ min: 1, max: 4_000 }) }),
  fc.record({
    do: fc.constant("sound" as const),
    milliseconds: fc.integer({ min: 1, max: 2_000 }).map((tens) => tens * 10),
  }),
  fc.constant({ do: "transcribe" as const }),
  fc.record({
    do: fc.constant("respond" as const),
    tokens: fc.tuple(count, count, count, count, count, count),
  }),
  fc.constant({ do: "leave" as const }),
);

const usageOf = ([text, audio, cachedText, cachedAudio, outText, outAudio]: readonly [
  number,
  number,
  number,
  number,
  number,
  number,
]) => ({
  total_tokens: text + audio + cachedText + cachedAudio + outText + outAudio,
  input_tokens: text + audio + cachedText + cachedAudio,
  output_tokens: outText + outAudio,
  input_token_details: {
    text_tokens: text + cachedText,
    audio_tokens: audio + cachedAudio,
    cached_tokens: cachedText + cachedAudio,
    cached_tokens_details: { text_tokens: cachedText, audio_tokens: cachedAudio },
  },
  output_token_details: { text_tokens: outText, audio_tokens: outAudio },
});

type Usage = ReturnType<typeof usageOf>;

/** Returns the price of a response by the price sheet, in nano-USD. */
function priceOf({ input_token_details: sent, output_token_details: made }: Usage): number {
  const { text_tokens: cachedText, audio_tokens: cachedAudio } = sent.cached_tokens_details;
  return (
    (sent.text_tokens - cachedText) * nano.text +
    (sent.audio_tokens - cachedAudio) * nano.audio +
    cachedText * nano.cachedText +
    cachedAudio * nano.cachedAudio +
    made.text_tokens * nano.outText +
    made.audio_tokens * outAudioNano
  );
}

/** Returns what the provider has reported since the last call, by the price sheet, in nano-USD. */
function reportedNano(): number {
  const responses = upstream.reports.responses.splice(0) as Usage[];
  const transcripts = upstream.reports.transcripts.splice(0) as { seconds: number }[];
  return (
    responses.reduce((total, usage) => total + priceOf(usage), 0) +
    transcripts.reduce((total, { seconds }) => total + Math.round(seconds * 1_000) * soundNano, 0)
  );
}

const headers = {
  authorization: `Bearer ${testManagementKey}`,
  "content-type": "application/json",
};

async function makeKey(limit: number): Promise<string> {
  const made = await gateway.post("/keys", { name: "k", limit }, { headers });
  return ((await made.json()) as { key: string }).key;
}

async function spentNano(key: string): Promise<number> {
  const found = await fetch(`${gateway.baseUrl}/key`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const { data } = (await found.json()) as { data: { usage: number } };
  return Math.round(data.usage * 1e9);
}

/** Runs the steps of a session; returns whether it ended because nothing was left. */
async function run(key: string, steps: readonly Step[]): Promise<boolean> {
  const path = "/v1/realtime?model=acme/voice";
  const client = await SocketClient.open(gateway.origin, { key, path }).catch(() => undefined);
  if (client === undefined) return true;
  const transcription = { model: "acme/whisper" };
  client.send({
    type: "session.update",
    session: { type: "realtime", audio: { input: { transcription } } },
  });
  await client.until("session.updated", "error");
  for (const each of steps) {
    if (client.socket.readyState !== WebSocket.OPEN) break;
    if (each.do === "leave") break;
    await take(client, each).catch(() => undefined);
  }
  client.close();
  const { code } = await client.closed;
  return code === 1008 || client.events.some(({ type }) => type === "error");
}

async function take(client: SocketClient, each: Exclude<Step, { do: "leave" }>): Promise<void> {
  switch (each.do) {
    case "say": {
      const content = [{ type: "input_text", text: "x".repeat(each.characters) }];
      const item = { type: "message", role: "user", content };
      client.send({ type: "conversation.item.create", item });
      await client.until("conversation.item.done", "error");
      return;
    }
    case "sound": {
      const audio = Buffer.alloc(each.milliseconds * 48).toString("base64");
      client.send({ type: "input_audio_buffer.append", audio });
      return;
    }
    case "transcribe":
      client.send({ type: "input_audio_buffer.commit" });
      await client.until("conversation.item.input_audio_transcription.completed", "error");
      return;
    case "respond":
      upstream.usage = usageOf(each.tokens);
      client.send({ type: "response.create" });
      await client.until("response.done", "error");
  }
}

/**
 * Waits until every charge was made: no hold is open, and the gateway has left its provider. Between
 * two charges of a session no hold is open either.
 */
async function settled(): Promise<void> {
  while (upstream.openCount > 0 || gateway.app.ledger.openHoldCount > 0) await Bun.sleep(5);
}

const sessions = fc.array(fc.array(step, { maxLength: 12 }), { minLength: 1, maxLength: 3 });

test("sessions cost what their provider reports by the price sheet, to the nano-dollar", async () => {
  await fc.assert(
    fc.asyncProperty(sessions, async (all) => {
      const key = await makeKey(1_000);
      reportedNano();
      // One after the other, since the provider's next usage belongs to one session.
      for (const steps of all) expect(await run(key, steps)).toBe(false);
      await settled();
      expect(await spentNano(key)).toBe(reportedNano());
    }),
    { numRuns: 12 },
  );
}, 240_000);

test("parallel sessions never cost more than the limit of their key, whatever comes", async () => {
  await fc.assert(
    fc.asyncProperty(sessions, fc.integer({ min: 1, max: 60 }), async (all, hundredths) => {
      const limit = hundredths / 100;
      const key = await makeKey(limit);
      reportedNano();
      await Promise.all(all.map((steps) => run(key, steps)));
      await settled();
      const spent = await spentNano(key);
      expect(spent).toBeLessThanOrEqual(limit * 1e9);
      expect(spent).toBeLessThanOrEqual(reportedNano());
    }),
    { numRuns: 12 },
  );
}, 240_000);
