import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { body, end, head, type Step } from "../../support/upstream/steps.ts";
import { tales } from "./support/beats.ts";
import { startLeavingClient } from "./support/leaving-client.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { nameOf, pairs } from "./support/pairs.ts";
import { readStreamed } from "./support/reply.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

const heartbeat = body(": keep-alive\n\n");

describe("R20, each event is relayed before the provider sends the next one", () => {
  test.each(pairs.map((pair) => [nameOf(pair), pair] as const))(
    "%s",
    async (_, { client, upstream }) => {
      const { opening, beats, ending } = tales[upstream];
      const gated = beats.map((beat) => ({ ...beat, gate: scene.upstreams[upstream].gate() }));
      const steps: Step[] = gated.flatMap(({ events, gate }) => [...events, heartbeat, gate]);
      scene.upstreams[upstream].script([head(), ...opening, ...steps, ...ending, end()]);
      const leaving = startLeavingClient(scene.gateway, {
        client,
        body: { ...client.ask("Weather?"), stream: true },
        providers: [providerId(upstream)],
      });
      for (const { word, gate } of gated) {
        await leaving.hasSeen(word);
        gate.open();
      }
      await leaving.over;
      const reply = readStreamed(client, leaving.seen());
      expect([reply.breaches, reply.errors, reply.endings]).toEqual([[], [], 1]);
      expect([reply.thought, reply.said, reply.finish]).toEqual([
        "pondering further",
        "first second",
        "tool_calls",
      ]);
      expect(reply.calls.map((call) => [call.name, JSON.parse(call.arguments)])).toEqual([
        ["get_weather", { city: "Paris, Texas" }],
      ]);
    },
  );
});
