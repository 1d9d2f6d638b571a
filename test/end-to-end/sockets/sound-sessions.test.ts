import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  spyOn,
  test,
} from "bun:test";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { refusalOf, SocketClient } from "./support/socket-client.ts";
import { startRealtimeUpstream, type RealtimeUpstream } from "./support/realtime-upstream.ts";

let upstream: RealtimeUpstream;
let gateway: TestGateway;
const open: SocketClient[] = [];

beforeAll(async () => {
  upstream = startRealtimeUpstream();
  gateway = await startGateway({
    providers: [
      provider({
        id: "acme",
        base_url: upstream.baseUrl,
        dialect: {
          chat: "openai-chat",
          realtime: "openai-realtime",
          transcriptions: "openai-audio",
        },
        api_key: "upstream-secret",
        models: [
          {
            id: "acme/voice",
            upstream_model: "gpt-realtime-up",
            surface: "realtime",
            pricing: { prompt: "4", completion: "24", audio_input: "32", audio_output: "64" },
          },
          {
            id: "acme/whisper",
            upstream_model: "whisper-up",
            surface: "transcriptions",
            pricing: { audio_input_minute: "0.006" },
          },
          {
            id: "acme/transcribe",
            upstream_model: "transcribe-up",
            surface: "transcriptions",
            pricing: { audio_input: "6", prompt: "2.5", completion: "10" },
          },
          {
            id: "acme/translate",
            upstream_model: "gpt-translate-up",
            surface: "realtime",
            pricing: { audio_input_minute: "0.03" },
          },
        ],
      }),
    ],
  });
});
beforeEach(() => {
  upstream.transcriptUsage = undefined;
});
afterEach(() => {
  for (const client of open.splice(0)) client.close();
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const headers = {
  authorization: `Bearer ${testManagementKey}`,
  "content-type": "application/json",
};

async function makeKey(settings: object = {}): Promise<string> {
  const made = await gateway.post("/keys", { name: "k", ...settings }, { headers });
  return ((await made.json()) as { key: string }).key;
}

/** Returns what a key has spent, in USD. */
async function spentBy(key: string): Promise<number> {
  const found = await fetch(`${gateway.baseUrl}/key`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return ((await found.json()) as { data: { usage: number } }).data.usage;
}

/** A key that can be taken out of service, and what it has spent. */
async function disableableKey(): Promise<{
  key: string;
  disable(): Promise<unknown>;
  spent(): Promise<number>;
}> {
  const made = await gateway.post("/keys", { name: "k" }, { headers });
  const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
  const address = `${gateway.baseUrl}/keys/${data.hash}`;
  return {
    key,
    disable: () => fetch(address, { method: "PATCH", headers, body: '{"disabled":true}' }),
    spent: async () =>
      ((await (await fetch(address, { headers })).json()) as { data: { usage: number } }).data
        .usage,
  };
}

/**
 * Waits until every charge was made: no hold is open, and the gateway has left its provider. Between
 * two charges of a session no hold is open either.
 */
const settled = (): Promise<void> =>
  pollUntil(() => upstream.openCount === 0 && gateway.app.ledger.openHoldCount === 0);

async function connect(
  path: string,
  options: Parameters<typeof SocketClient.open>[1] = {},
): Promise<SocketClient> {
  const client = await SocketClient.open(gateway.origin, { path, ...options });
  open.push(client);
  return client;
}

/** Sound of a length, 24 kHz in 16 bits. */
const sound = (seconds: number): string => Buffer.alloc(seconds * 48_000).toString("base64");

/** Keeps the next charge from being durable until `resume`. */
function stalledCharge(): { resume(): void } {
  const { ledger } = gateway.app;
  const resumed = Promise.withResolvers<void>();
  const post = spyOn(ledger, "post").mockImplementationOnce((posting) => {
    post.mockRestore();
    const posted = ledger.post(posting);
    return { ...posted, durable: resumed.promise.then(() => posted.durable) };
  });
  return { resume: resumed.resolve };
}

const transcribing = (model: string) => ({
  type: "session.update",
  session: { type: "transcription", audio: { input: { transcription: { model } } } },
});

/** Sends sound as one item, and returns its transcript. */
async function transcribe(client: SocketClient, seconds: number): Promise<unknown> {
  client.send({ type: "input_audio_buffer.append", audio: sound(seconds) });
  client.send({ type: "input_audio_buffer.commit" });
  const done = await client.until("conversation.item.input_audio_transcription.completed");
  return done["transcript"];
}

describe("sessions of transcripts", () => {
  const path = "/v1/realtime?intent=transcription";

  test("open at the provider of the model that session.update names, and charge by the second", async () => {
    const key = await makeKey();
    const client = await connect(path, { key });
    expect(await client.next()).toMatchObject({
      type: "session.created",
      session: { type: "transcription", object: "realtime.transcription_session" },
    });
    client.send(transcribing("acme/whisper"));
    const updated = await client.until("session.updated");
    expect(updated).toMatchObject({
      session: { audio: { input: { transcription: { model: "acme/whisper" } } } },
    });
    expect(upstream.handshakes.at(-1)?.query.get("intent")).toBe("transcription");
    expect(upstream.handshakes.at(-1)?.query.has("model")).toBe(false);
    expect(await transcribe(client, 3)).toBe("Hello.");
    expect(await transcribe(client, 30)).toBe("Hello.");
    expect(client.events.filter(({ type }) => type === "session.created")).toHaveLength(1);
    client.close();
    await settled();
    expect(await spentBy(key)).toBeCloseTo((33 * 0.006) / 60, 9);
  });

  test("go on where sound is sent while the transcript before it is being charged", async () => {
    const key = await makeKey();
    const client = await connect(path, { key });
    client.send(transcribing("acme/whisper"));
    await client.until("session.updated");
    const charge = stalledCharge();
    expect(await transcribe(client, 3)).toBe("Hello.");
    client.send({ type: "input_audio_buffer.append", audio: sound(30) });
    client.send({ type: "input_audio_buffer.commit" });
    await client.until("input_audio_buffer.committed");
    charge.resume();
    const done = await client.until("conversation.item.input_audio_transcription.completed");
    expect(done["transcript"]).toBe("Hello.");
    client.close();
    await settled();
    expect(await spentBy(key)).toBeCloseTo((33 * 0.006) / 60, 9);
  });

  test("charge what was sent before the money ended", async () => {
    // 40 seconds and a bit: less than 24 seconds and what is held beyond them, once one was paid.
    const key = await makeKey({ limit: 0.004_01 });
    const client = await connect(path, { key });
    client.send(transcribing("acme/whisper"));
    await client.until("session.updated");
    const charge = stalledCharge();
    expect(await transcribe(client, 1)).toBe("Hello.");
    client.send({ type: "input_audio_buffer.append", audio: sound(24) });
    client.send({ type: "input_audio_buffer.commit" });
    await client.until("input_audio_buffer.committed");
    charge.resume();
    await client.closed;
    await settled();
    expect(await spentBy(key)).toBeCloseTo((25 * 0.006) / 60, 9);
  });

  test("charge what was sent before the key was revoked", async () => {
    const { key, disable, spent } = await disableableKey();
    const client = await connect(path, { key });
    client.send(transcribing("acme/whisper"));
    await client.until("session.updated");
    const charge = stalledCharge();
    expect(await transcribe(client, 1)).toBe("Hello.");
    client.send({ type: "input_audio_buffer.append", audio: sound(24) });
    client.send({ type: "input_audio_buffer.commit" });
    await client.until("input_audio_buffer.committed");
    await disable();
    charge.resume();
    expect((await client.closed).reason).toBe("invalid_api_key");
    await settled();
    expect(await spent()).toBeCloseTo((25 * 0.006) / 60, 9);
  });

  test("charge the tokens that the provider counts, where the model is priced by them", async () => {
    const key = await makeKey();
    upstream.transcriptUsage = {
      type: "tokens",
      total_tokens: 48,
      input_tokens: 36,
      output_tokens: 12,
      input_token_details: { text_tokens: 6, audio_tokens: 30 },
    };
    const client = await connect(path, { key });
    client.send(transcribing("acme/transcribe"));
    await transcribe(client, 3);
    client.close();
    await settled();
    expect(await spentBy(key)).toBeCloseTo((30 * 6 + 6 * 2.5 + 12 * 10) / 1e6, 9);
  });

  test.each([
    ["sound before a model", { type: "input_audio_buffer.append", audio: sound(1) }],
    ["a response", { type: "response.create" }],
    ["another type of session", { type: "session.update", session: { type: "realtime" } }],
    ["a model of another surface", transcribing("acme/voice")],
    ["an unknown model", transcribing("acme/nothing")],
  ])("%s is answered with an error, and the session goes on", async (_, event) => {
    const client = await connect(path);
    client.send(event);
    expect((await client.until("error"))["error"]).toMatchObject({ message: expect.any(String) });
    client.send(transcribing("acme/whisper"));
    await client.until("session.updated");
  });

  test("a key that may not use the model is refused it", async () => {
    const key = await makeKey({ allowed_models: ["acme/voice"] });
    const client = await connect(path, { key });
    client.send(transcribing("acme/whisper"));
    expect(await client.until("error")).toMatchObject({
      error: { param: "session.audio.input.transcription.model" },
    });
    expect(await spentBy(key)).toBe(0);
  });

  test("end with 1008 when the sound costs more than the key has left, and within its limit", async () => {
    const limit = 0.01;
    const key = await makeKey({ limit });
    const client = await connect(path, { key });
    client.send(transcribing("acme/whisper"));
    await client.until("session.updated");
    for (let index = 0; index < 20; index += 1) {
      if (client.socket.readyState !== WebSocket.OPEN) break;
      client.send({ type: "input_audio_buffer.append", audio: sound(10) });
      client.send({ type: "input_audio_buffer.commit" });
    }
    expect(await client.closed).toMatchObject({ code: 1008 });
    expect(client.events.at(-1)).toMatchObject({ error: { code: "insufficient_balance" } });
    await settled();
    expect(await spentBy(key)).toBeLessThanOrEqual(limit);
    expect(await spentBy(key)).toBeGreaterThan(0);
  });
});

describe("transcripts within a session", () => {
  const withTranscripts = (transcription: unknown) => ({
    type: "session.update",
    session: { type: "realtime", audio: { input: { transcription } } },
  });

  test("are charged on their own model beside the responses", async () => {
    const key = await makeKey();
    const client = await connect("/v1/realtime?model=acme/voice", { key });
    client.send(withTranscripts({ model: "acme/whisper", language: "en" }));
    expect(await client.until("session.updated")).toMatchObject({
      session: { audio: { input: { transcription: { model: "acme/whisper", language: "en" } } } },
    });
    expect(await transcribe(client, 12)).toBe("Hello.");
    client.close();
    await settled();
    expect(await spentBy(key)).toBeCloseTo((12 * 0.006) / 60, 9);
  });

  test("whose model the key may not use are left out, with an error that names the setting", async () => {
    const key = await makeKey({ allowed_models: ["acme/voice"] });
    const client = await connect("/v1/realtime?model=acme/voice", { key });
    client.send(withTranscripts({ model: "acme/whisper" }));
    expect(await client.until("error")).toMatchObject({
      error: { param: "session.audio.input.transcription.model" },
    });
    await client.until("session.updated");
    expect(upstream.events.at(-1)).toEqual({
      type: "session.update",
      session: { type: "realtime", audio: { input: {} } },
    });
  });

  test("stop when they are turned off", async () => {
    const client = await connect("/v1/realtime?model=acme/voice");
    client.send(withTranscripts({ model: "acme/whisper" }));
    await client.until("session.updated");
    client.send(withTranscripts(null));
    expect(await client.until("session.updated")).toMatchObject({
      session: { audio: { input: { transcription: null } } },
    });
  });
});

describe("a client that leaves while its model is being admitted", () => {
  /** Keeps the next hold waiting; `resume` lets it be taken, and resolves when it is. */
  function stalledHold(): { asked(): boolean; resume(): Promise<void> } {
    const { ledger } = gateway.app;
    const resumed = Promise.withResolvers<void>();
    const taken = Promise.withResolvers<void>();
    let isAsked = false;
    const reserve = spyOn(ledger, "reserve").mockImplementationOnce(async (request) => {
      isAsked = true;
      reserve.mockRestore();
      await resumed.promise;
      const outcome = await ledger.reserve(request);
      taken.resolve();
      return outcome;
    });
    return {
      asked: () => isAsked,
      resume() {
        resumed.resolve();
        return taken.promise;
      },
    };
  }

  test("leaves no hold for transcripts within a session", async () => {
    const client = await connect("/v1/realtime?model=acme/voice");
    await client.next();
    const hold = stalledHold();
    client.send({
      type: "session.update",
      session: {
        type: "realtime",
        audio: { input: { transcription: { model: "acme/whisper" } } },
      },
    });
    await pollUntil(hold.asked);
    client.close();
    await client.closed;
    await settled();
    await hold.resume();
    await settled();
  });

  test("leaves neither a hold nor a provider's session of transcripts", async () => {
    const client = await connect("/v1/realtime?intent=transcription");
    await client.next();
    const before = upstream.handshakes.length;
    const hold = stalledHold();
    client.send(transcribing("acme/whisper"));
    await pollUntil(hold.asked);
    client.close();
    await client.closed;
    // The end of the socket reaches the gateway before what its client asks next.
    await spentBy(await makeKey());
    await hold.resume();
    await pollUntil(() => upstream.handshakes.length > before);
    await settled();
  });
});

describe("sessions that translate", () => {
  const path = "/v1/realtime/translations?model=acme/translate";
  const append = (seconds: number) => ({
    type: "session.input_audio_buffer.append",
    audio: sound(seconds),
  });

  test("charge the time of what was sent, each minute and at the end", async () => {
    const key = await makeKey();
    const client = await connect(path, { key });
    expect(await client.next()).toMatchObject({ session: { model: "acme/translate" } });
    client.send({ type: "session.update", session: { audio: { output: { language: "es" } } } });
    await client.until("session.updated");
    for (const seconds of [40, 40, 10]) {
      client.send(append(seconds));
      expect(await client.until("session.output_transcript.delta")).toMatchObject({
        delta: "Hola",
      });
    }
    client.send({ type: "session.close" });
    await client.until("session.closed");
    expect((await client.closed).code).toBe(1000);
    // The provider has left on its own, maybe before the last charge.
    const cost = (90 * 0.03) / 60;
    await pollUntil(async () => (await spentBy(key)) > cost - 1e-9);
    await settled();
    expect(await spentBy(key)).toBeCloseTo(cost, 9);
    expect(upstream.handshakes.at(-1)).toMatchObject({ path: "/v1/realtime/translations" });
  });

  test("end with the next sound once the key was revoked, and charge what came before", async () => {
    const { key, disable, spent } = await disableableKey();
    const client = await connect(path, { key });
    client.send(append(40));
    await client.until("session.output_transcript.delta");
    await disable();
    client.send(append(10));
    expect(await client.closed).toMatchObject({ code: 1008, reason: "invalid_api_key" });
    await settled();
    expect(await spent()).toBeCloseTo((40 * 0.03) / 60, 9);
  });

  test("take no event of other sessions, and no other model", async () => {
    const client = await connect(path);
    client.send({ type: "response.create" });
    expect(await client.until("error")).toMatchObject({ error: { code: "bad_request" } });
    client.send({ type: "session.update", session: { model: "acme/voice" } });
    expect(await client.until("error")).toMatchObject({ error: { param: "session.model" } });
  });

  test("are refused on a model without a price of a minute, and for a key without money", async () => {
    const of = (key: string) => ({ authorization: `Bearer ${key}` });
    const voice = "/v1/realtime/translations?model=acme/voice";
    expect((await refusalOf(gateway.origin, voice, of(await makeKey()))).status).toBe(404);
    const poor = await makeKey({ limit: 0.001 });
    expect((await refusalOf(gateway.origin, path, of(poor))).status).toBe(402);
    await settled();
  });
});

describe("client secrets", () => {
  interface Secret {
    value: string;
    session: Record<string, unknown>;
    client_secret: { value: string };
  }
  const make = async (path: string, body: object): Promise<Secret> =>
    (await (await gateway.post(path, body)).json()) as Secret;

  test("of transcripts open a session that begins with their settings, and no other", async () => {
    const session = transcribing("acme/whisper").session;
    const made = await make("/realtime/client_secrets", { session });
    expect(made.session).toMatchObject({
      type: "transcription",
      object: "realtime.transcription_session",
    });
    const client = await connect("/v1/realtime", { key: made.value });
    expect(await client.until("session.updated")).toMatchObject({
      session: { audio: { input: { transcription: { model: "acme/whisper" } } } },
    });
    expect(await transcribe(client, 2)).toBe("Hello.");
    client.send(transcribing("acme/transcribe"));
    expect(await client.until("error")).toMatchObject({
      error: { param: "session.audio.input.transcription.model" },
    });
  });

  test("in the form of the beta name the settings of the beta", async () => {
    const made = await make("/realtime/transcription_sessions", {
      input_audio_format: "pcm16",
      input_audio_transcription: { model: "acme/whisper" },
    });
    expect(made.client_secret.value).toStartWith("ek_");
    const client = await connect("/v1/realtime", { key: made.client_secret.value });
    await client.until("session.updated");
    expect(upstream.events.at(-1)).toMatchObject({
      session: {
        type: "transcription",
        audio: { input: { format: { type: "audio/pcm", rate: 24_000 } } },
      },
    });
    const voice = await make("/realtime/sessions", { model: "acme/voice", voice: "alloy" });
    const other = await connect("/v1/realtime", { key: voice.client_secret.value });
    await other.until("session.updated");
    expect(upstream.events.at(-1)).toMatchObject({
      session: { audio: { output: { voice: "alloy" } } },
    });
  });

  test("of translations open those alone", async () => {
    const session = { model: "acme/translate" };
    const made = await make("/realtime/translations/client_secrets", { session });
    const client = await connect("/v1/realtime/translations", { key: made.value });
    expect(await client.next()).toMatchObject({ type: "session.created" });
    const headers = { authorization: `Bearer ${made.value}` };
    const refusal = await refusalOf(gateway.origin, "/v1/realtime?model=acme/translate", headers);
    expect(refusal.status).toBe(403);
  });

  test("with a limit spend no more than that, whatever their key has left", async () => {
    const made = await make("/realtime/client_secrets", {
      session: transcribing("acme/whisper").session,
      limit: 0.004,
    });
    const client = await connect("/v1/realtime", { key: made.value });
    await client.until("session.updated");
    for (let index = 0; index < 10; index += 1) {
      if (client.socket.readyState !== WebSocket.OPEN) break;
      client.send({ type: "input_audio_buffer.append", audio: sound(10) });
    }
    expect(await client.closed).toMatchObject({ code: 1008 });
    await settled();
  });
});
