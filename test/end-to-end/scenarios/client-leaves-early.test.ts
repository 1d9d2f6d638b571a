import { afterEach, describe, expect, test } from "bun:test";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { RawClient } from "../../support/upstream/raw-client.ts";
import { json } from "../../support/upstream/steps.ts";
import { eventually } from "./support/eventually.ts";
import { startLeavingClient } from "./support/leaving-client.ts";
import { portOf, rawChatHead } from "./support/raw-chat-head.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";
import { settledRows } from "./support/settled-rows.ts";

let scene: Scene;
afterEach(() => scene.end());

const leftAndSeen = async (client: { leave(): number; over: Promise<void> }): Promise<number> => {
  const leftMs = client.leave();
  await client.over;
  await scene.gateway.get("/models/count");
  return leftMs;
};

describe("a client that leaves before a provider has its request", () => {
  test("while sending its body: no provider is asked and nothing is held", async () => {
    scene = await startScene();
    const client = await RawClient.connect(portOf(scene.gateway));
    const text = JSON.stringify(chatRequest());
    client.send(rawChatHead(`content-length: ${text.length}`));
    client.send(text.slice(0, -1));
    await scene.gateway.get("/models/count");
    client.vanish();
    await scene.gateway.get("/models/count");
    expect([scene.acme.requests.length, await settledRows(scene.gateway)]).toEqual([0, []]);
  });

  test("while the provider connection is being opened: the attempt is aborted at once", async () => {
    const silent = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: () => undefined, open: () => accepted.resolve() },
    });
    const accepted = Promise.withResolvers<void>();
    try {
      // The TLS handshake is never answered, so the connection is never made.
      scene = await startScene({
        acme: { base_url: `https://127.0.0.1:${silent.port}/v1`, timeouts_ms: { connect: 60_000 } },
      });
      const client = startLeavingClient(scene.gateway, chatRequest());
      await accepted.promise;
      const leftMs = await leftAndSeen(client);
      await eventually("the hold is back", () => scene.gateway.app.ledger.openHoldCount === 0);
      // The connection would be waited for for a minute.
      expect(performance.now() - leftMs).toBeLessThan(10_000);
      expect(await settledRows(scene.gateway)).toMatchObject([
        { status: "cancelled", costNano: 0n },
      ]);
    } finally {
      silent.stop(true);
    }
  });
});

describe("a client that has left gets no fallback", () => {
  for (const kind of ["stream", "whole"] as const) {
    test(`drain, ${kind}: the provider fails after the client has left`, async () => {
      scene = await startScene({ withBackup: true, settings: { disconnect: "drain" } });
      const gate = scene.acme.gate();
      scene.acme.script([gate, ...json(chatError("overloaded"), { status: 500 })]);
      const client = startLeavingClient(scene.gateway, chatRequest({ stream: kind === "stream" }));
      await gate.reached;
      await leftAndSeen(client);
      gate.open();
      await eventually(
        "the request is settled",
        async () => (await settledRows(scene.gateway)).length > 0,
      );
      expect(await settledRows(scene.gateway)).toMatchObject([
        { status: "cancelled", provider: "acme", costNano: 0n },
      ]);
      expect(scene.backup.requests.length).toBe(0);
    });
  }
});
