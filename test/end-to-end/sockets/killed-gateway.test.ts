import { afterAll, beforeAll, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { endProcesses, startProcess, temporaryDirectory } from "../../support/process.ts";
import {
  startScriptedUpstream,
  type ScriptedUpstream,
} from "../../support/scripted-upstream/scripted-upstream.ts";
import { chatChunks } from "../../support/upstream/openai-chat-fixtures.ts";
import { head, sse } from "../../support/upstream/steps.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import {
  mixedUsage,
  startRealtimeUpstream,
  type RealtimeUpstream,
} from "./support/realtime-upstream.ts";
import { SocketClient } from "./support/socket-client.ts";

let chat: ScriptedUpstream;
let voice: RealtimeUpstream;
beforeAll(async () => {
  chat = await startScriptedUpstream();
  voice = startRealtimeUpstream();
});
afterAll(async () => {
  await endProcesses();
  chat.stop();
  voice.stop();
});

const yaml = (): string =>
  JSON.stringify({
    providers: [
      {
        id: "acme",
        base_url: chat.baseUrl,
        dialect: "openai-chat",
        api_key: "upstream-secret",
        models: [{ id: "acme/large", pricing: { prompt: "1", completion: "2" } }],
      },
      {
        id: "voice",
        base_url: voice.baseUrl,
        dialect: { realtime: "openai-realtime" },
        api_key: "upstream-secret",
        models: [
          {
            id: "voice/one",
            surface: "realtime",
            pricing: {
              ...{ prompt: "4", completion: "24", cache_read: "0.4" },
              ...{ audio_input: "32", audio_output: "64", audio_cache_read: "0.4" },
            },
          },
        ],
      },
    ],
  });

/** 80 + 60 + 90 cached tokens in, 20 + 80 out, at the prices above. */
const voiceCost = (80 * 4 + 60 * 32 + 90 * 0.4 + 20 * 24 + 80 * 64) / 1e6;

/** Returns what the key has spent, in USD. */
async function spent(url: string): Promise<number> {
  const headers = { authorization: `Bearer ${testLlmKey}` };
  const found = await fetch(`${url}/v1/key`, { headers });
  return ((await found.json()) as { data: { usage: number } }).data.usage;
}

test("a kill -9 within a frame loses no charge that was shown, and charges nothing twice", async () => {
  const dataDirectory = temporaryDirectory();
  const options = { yaml: yaml(), environment: bootstrapVariables, dataDirectory };
  const gateway = await startProcess(options);
  const responses = await SocketClient.open(gateway.url);
  chat.say({ text: ["Whole."] });
  const whole = await responses.create({ model: "acme/large", input: "Hi", store: false });
  const { cost } = whole["usage"] as { cost: number };
  expect(cost).toBeGreaterThan(0);
  const session = await SocketClient.open(gateway.url, { path: "/v1/realtime?model=voice/one" });
  session.send({ type: "response.create" });
  const done = await session.until("response.done");
  expect(done).toMatchObject({ response: { usage: mixedUsage } });

  const chunks = chatChunks({ text: ["One ", "two."] }).map((chunk) => sse(chunk));
  chat.enqueue([head(), ...chunks.slice(0, 2), chat.gate()]);
  responses.send({ type: "response.create", model: "acme/large", input: "More", store: false });
  await responses.until("response.output_text.delta");
  voice.waits = true;
  session.send({ type: "response.create" });
  await session.until("response.output_text.delta");
  await gateway.kill9();
  await Promise.all([responses.closed, session.closed]);

  const again = await startProcess(options);
  expect(await spent(again.url)).toBeCloseTo(cost + voiceCost, 9);
  expect(await again.terminate()).toBe(0);
}, 240_000);
