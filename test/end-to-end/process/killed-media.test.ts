import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import type { SeenCharge } from "./support/seen-charge.ts";
import { expectToStand, standingBooks } from "./support/standing-books.ts";
import { stores, type OpenedStore } from "./support/stores.ts";

/** A second of silence. */
const wav = (() => {
  const bytes = Buffer.alloc(44 + 16_000);
  bytes.write("RIFF", 0, "latin1");
  bytes.writeUInt32LE(36 + 16_000, 4);
  bytes.write("WAVEfmt ", 8, "latin1");
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(8_000, 24);
  bytes.writeUInt32LE(16_000, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write("data", 36, "latin1");
  bytes.writeUInt32LE(16_000, 40);
  return bytes;
})();

const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    await request.arrayBuffer();
    if (pathname.endsWith("/images/generations"))
      return Response.json({ created: 1, data: [{ b64_json: "aaaa" }] });
    if (pathname.endsWith("/audio/transcriptions"))
      return Response.json({ text: "hello", usage: { type: "duration", seconds: 1 } });
    return new Response(new Uint8Array(20_000), { headers: { "content-type": "audio/mpeg" } });
  },
});

const yaml = `
storage: { durability: process }
plans: { enterprise: { per_minute: 1000000 } }
providers:
  - id: acme
    base_url: http://127.0.0.1:${upstream.port}/v1
    api_key: upstream-secret
    dialect: { images: openai-images, transcriptions: openai-audio, speech: openai-audio }
    models:
      - { id: acme/paint, upstream_model: paint, surface: images, pricing: { image: "0.0004" } }
      - { id: acme/hear, upstream_model: whisper-1, surface: transcriptions, pricing: { audio_input_minute: "0.0006" } }
      - { id: acme/say, upstream_model: tts-1, surface: speech, pricing: { characters: "15" } }
`;

/** The kinds of requests, and what each costs. */
const kinds = {
  picture: {
    costNano: 400_000n,
    path: "/images/generations",
    body: () => JSON.stringify({ model: "acme/paint", prompt: "a cat" }),
  },
  // One second at 0.0006 USD a minute.
  transcript: {
    costNano: 10_000n,
    path: "/audio/transcriptions",
    body() {
      const form = new FormData();
      form.append("model", "acme/hear");
      form.append("file", new File([wav], "a.wav", { type: "audio/wav" }));
      return form;
    },
  },
  // 20 characters at 15 USD a million.
  speech: {
    costNano: 300_000n,
    path: "/audio/speech",
    body: () => JSON.stringify({ model: "acme/say", input: "x".repeat(20), voice: "alloy" }),
  },
} as const;

/** Asks until the gateway is gone; returns the charges of the answers that came whole. */
async function askUntilGone(
  { url }: GatewayProcess,
  { kind, see }: { kind: keyof typeof kinds; see(charge: SeenCharge): void },
): Promise<void> {
  const { costNano, path, body } = kinds[kind];
  for (;;) {
    const content = body();
    const isJson = typeof content === "string";
    let generationId: string;
    try {
      const response = await fetch(`${url}/v1${path}`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${testLlmKey}`,
          ...(isJson && { "content-type": "application/json" }),
        },
        body: content,
      });
      generationId = `gen_${response.headers.get("x-request-id")}`;
      expect(response.status).toBe(200);
      await response.arrayBuffer();
    } catch (error) {
      if (error instanceof Error && "matcherResult" in error) throw error;
      return;
    }
    see({ generationId, costNano });
  }
}

const clientsOfAKind = 5;

/** SQLite alone: the commit is that of chat, which kill-nine.test.ts shows on both engines. */
describe.each(stores.slice(0, 1))("kill -9 while pictures and sound are made, on $name", (each) => {
  let store: OpenedStore;
  beforeAll(async () => {
    store = await each.open();
  });
  afterAll(async () => {
    await endProcesses();
    await upstream.stop(true);
  });

  test("every answer that a client has whole is charged once, and nothing is held", async () => {
    const seen: SeenCharge[] = [];
    for (const sinceStart of [12, 40, 90]) {
      const gateway = await startProcess({
        ...store.options,
        environment: { ...bootstrapVariables, ...store.options.environment },
        yaml,
      });
      const before = seen.length;
      const enough = Promise.withResolvers<void>();
      const see = (charge: SeenCharge): void => {
        seen.push(charge);
        if (seen.length === before + sinceStart) enough.resolve();
      };
      const clients = Object.keys(kinds).flatMap((kind) =>
        Array.from({ length: clientsOfAKind }, () =>
          askUntilGone(gateway, { kind: kind as keyof typeof kinds, see }),
        ),
      );
      const gone = Promise.all(clients);
      await Promise.race([enough.promise, gone]);
      await gateway.kill9();
      await gone;
    }
    const books = await standingBooks(store);
    expectToStand(seen, books);
    // What was under way at each kill may have been charged too.
    expect(books.charges.size - seen.length).toBeLessThanOrEqual(3 * 3 * clientsOfAKind);
    const charged = [...books.charges.values()].reduce((sum, cost) => sum + cost, 0n);
    expect(books.balanceNano).toBe(10_000_000_000n - charged);
  });
});
