import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import {
  startRealtimeUpstream,
  type RealtimeUpstream,
} from "../sockets/support/realtime-upstream.ts";
import { SocketClient } from "../sockets/support/socket-client.ts";
import type { AskedGateway } from "../process/support/ask.ts";
import { createKey, manage } from "./support/manage.ts";
import { hostNodes, type HostedNodes } from "./support/nodes.ts";
import { until } from "./support/until.ts";

const voiceYaml = (baseUrl: string): string => `
  - id: voice
    base_url: ${baseUrl}
    dialect: { realtime: openai-realtime }
    api_key: upstream-secret
    models:
      - id: voice/one
        surface: realtime
        pricing: { prompt: "4", completion: "24", cache_read: "0.4", audio_input: "32", audio_output: "64", audio_cache_read: "0.4" }
`;

/** 80 + 60 + 90 cached tokens in, 20 + 80 out, at the prices above. */
const voiceCost = (80 * 4 + 60 * 32 + 90 * 0.4 + 20 * 24 + 80 * 64) / 1e6;
const path = "/v1/realtime?model=voice/one";

describe.skipIf(!hasRedis)(`sockets on several gateways${redisMissing}`, () => {
  let voice: RealtimeUpstream;
  let nodes: HostedNodes;
  beforeAll(async () => {
    voice = startRealtimeUpstream();
    nodes = await hostNodes({ yaml: voiceYaml(voice.baseUrl) });
    nodes.upstream.script((request) => chatAnswer(request, {}));
  }, 240_000);
  afterAll(async () => {
    voice.stop();
    await nodes.stop();
  });

  const spentBy = async ({ url }: AskedGateway, key: string): Promise<number> => {
    const headers = { authorization: `Bearer ${key}` };
    const found = await fetch(`${url}/v1/key`, { headers });
    return ((await found.json()) as { data: { usage: number } }).data.usage;
  };

  test("parallel sessions of one key on both stay within its limit, to the nano-dollar", async () => {
    const limit = 0.2;
    const { key } = await createKey(nodes.gateways, { limit });
    let responses = 0;
    const talk = async ({ url }: AskedGateway): Promise<void> => {
      const client = await SocketClient.open(url, { key, path }).catch(() => undefined);
      if (client === undefined) return;
      for (;;) {
        client.send({ type: "response.create" });
        const { type } = await client.until("response.done", "error");
        if (type === "error") return;
        responses += 1;
      }
    };
    await Promise.all([...nodes.gateways, ...nodes.gateways, ...nodes.gateways].map(talk));
    expect(responses).toBeGreaterThan(2);
    expect(responses * voiceCost).toBeLessThanOrEqual(limit);
    for (const gateway of nodes.gateways) {
      const isKnown = async (): Promise<boolean> =>
        Math.abs((await spentBy(gateway, key)) - responses * voiceCost) < 1e-9;
      await until(isKnown, { patienceMs: 60_000, what: "both know what was spent" });
    }
  }, 240_000);

  test("a client secret of one opens a session on the other", async () => {
    const [first, second] = nodes.gateways;
    const { key } = await createKey(nodes.gateways, {});
    const made = await fetch(`${first.url}/v1/realtime/client_secrets`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ session: { type: "realtime", model: "voice/one" } }),
    });
    const { value } = (await made.json()) as { value: string };
    const client = await SocketClient.open(second.url, { key: value, path: "/v1/realtime" });
    await client.until("session.created");
    client.close();
  }, 240_000);

  test("a stored response is continued on the other, until its key is revoked on the first", async () => {
    const [first, second] = nodes.gateways;
    const { key, hash } = await createKey(nodes.gateways, {});
    const one = await SocketClient.open(first.url, { key });
    const stored = await one.create({ model: "acme/large", input: "Hi" });
    const other = await SocketClient.open(second.url, { key });
    const ask = { model: "acme/large", input: "More", previous_response_id: stored["id"] };
    expect(await other.create(ask)).toMatchObject({ status: "completed" });
    await manage(first, `/keys/${hash}`, { method: "DELETE" });
    const isRefused = async (): Promise<boolean> => (await other.create(ask))["status"] === 401;
    await until(isRefused, { patienceMs: 60_000, what: "the socket's next frame is refused" });
    one.close();
    other.close();
  }, 240_000);
});
