import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer, type Server, type Socket } from "node:net";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { startRealtimeUpstream, type RealtimeUpstream } from "./support/realtime-upstream.ts";
import { refusalOf, SocketClient } from "./support/socket-client.ts";

let upstream: RealtimeUpstream;
let silent: Server;
let gateway: TestGateway;
const connections = new Set<Socket>();

/** A provider of `acme/voice`, and of a model that it alone serves. */
const voiceAt = (
  id: string,
  { baseUrl, secret, timeouts = {} }: { baseUrl: string; secret: string; timeouts?: object },
) => {
  const pricing = { prompt: "4", completion: "24", audio_input: "32", audio_output: "64" };
  const model = { upstream_model: "gpt-realtime-up", surface: "realtime", pricing };
  return provider({
    id,
    base_url: baseUrl,
    dialect: { realtime: "openai-realtime" },
    api_key: secret,
    timeouts_ms: timeouts,
    models: [
      { id: "acme/voice", ...model },
      { id: `${id}/alone`, ...model },
    ],
  });
};

beforeAll(async () => {
  upstream = startRealtimeUpstream();
  silent = createServer((socket) => void connections.add(socket));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as { port: number };
  const secret = "upstream-secret";
  gateway = await startGateway({
    providers: [
      voiceAt("silent", {
        baseUrl: `http://127.0.0.1:${port}/v1`,
        secret,
        // The others answer, and are waited for on any machine.
        timeouts: { connect: 50 },
      }),
      voiceAt("refusing", { baseUrl: upstream.baseUrl, secret: "wrong-secret" }),
      voiceAt("good", { baseUrl: upstream.baseUrl, secret }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
  for (const socket of connections) socket.destroy();
  silent.close();
});

const at = (model: string): string => `/v1/realtime?model=${model}`;

test("a session is opened at the next provider where one never answers, and one refuses", async () => {
  const headers = { "x-service-provider": "silent,refusing,good" };
  const client = await SocketClient.open(gateway.origin, { path: at("acme/voice"), headers });
  expect(await client.until("session.created")).toMatchObject({ session: { model: "acme/voice" } });
  client.close();
});

test.each(["silent", "refusing"])(
  "a %s provider alone is a 502, and no hold is left",
  async (id) => {
    const headers = { authorization: `Bearer ${testLlmKey}` };
    const refusal = await refusalOf(gateway.origin, at(`${id}/alone`), headers);
    expect(refusal).toMatchObject({ status: 502, code: "bad_gateway" });
    while (gateway.app.ledger.openHoldCount > 0) await Bun.sleep(5);
  },
);

test.each([
  [1011, 1011],
  [4_000, 4_000],
  [undefined, 1011],
])(
  "a provider that closes with %p within a response ends it, and is charged",
  async (code, seen) => {
    upstream.waits = true;
    const client = await SocketClient.open(gateway.origin, { path: at("good/alone") });
    client.send({ type: "response.create" });
    await client.until("response.output_text.delta");
    upstream.closeAll(code);
    expect((await client.closed).code).toBe(seen);
    while (gateway.app.ledger.openHoldCount > 0) await Bun.sleep(5);
  },
);
