import { afterEach, describe, expect, test } from "bun:test";
import { openaiChatWire as wire } from "../../support/upstream/openai-chat-wire.ts";
import { fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import { heartbeat } from "../../support/upstream/harmless-oddities.ts";
import { head, json, stall, type Script } from "../../support/upstream/steps.ts";
import { at } from "./support/at.ts";
import { errorsIn, readReply, saidIn, type ChatReply } from "./support/chat-reply.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";
import { settledRows } from "./support/settled-rows.ts";

let scene: Scene;
afterEach(() => scene.end());

/** Long enough that no other timeout than the one under test strikes. */
const patient = 60_000;
const timeouts = (changes: Record<string, number>) => ({
  connect: patient,
  first_token: patient,
  idle: patient,
  total: patient,
  ...changes,
});

/** More of an event than can be sent before the timeout under test. */
const endless = (event: Script[number]): Script => Array.from({ length: 50_000 }, () => event);
const content = wire.content.slice(0, 1);

async function ask(
  limits: Record<string, number>,
  script: Script,
  stream = true,
): Promise<{ reply: ChatReply; ms: number }> {
  scene = await startScene({ acme: { timeouts_ms: timeouts(limits) } });
  scene.acme.script(script);
  const startedMs = performance.now();
  const reply = await readReply(
    await scene.gateway.post("/chat/completions", chatRequest({ stream })),
  );
  return { reply, ms: performance.now() - startedMs };
}

/** Which bound ends what, and whether the client has had content by then. */
const bounds: readonly (readonly [
  name: string,
  limits: Record<string, number>,
  script: Script,
  stream: boolean,
  delivered: boolean,
])[] = [
  ["first token: no response head", { first_token: 80 }, [], true, false],
  ["first token: silence after the head", { first_token: 80 }, [head(), stall()], true, false],
  ["idle: silence after a heartbeat", { idle: 80 }, [head(), heartbeat, stall()], true, false],
  ["idle: silence after the role", { idle: 80 }, [head(), ...wire.opening, stall()], true, false],
  [
    "idle: silence between events",
    { idle: 80 },
    [head(), ...wire.opening, ...content, stall()],
    true,
    true,
  ],
  [
    "idle: silence within a whole response",
    { idle: 80 },
    [...json(wire.whole).slice(0, 1), heartbeat, stall()],
    false,
    false,
  ],
  [
    "idle: silence within the body of an error",
    { idle: 80 },
    [head({ status: 500, framing: { contentLength: 99 } }), heartbeat, stall()],
    false,
    false,
  ],
  [
    "total: endless content",
    { total: 120 },
    [head(), ...wire.opening, ...endless(content[0] ?? stall())],
    true,
    true,
  ],
  [
    "total: endless heartbeats before the content",
    { total: 120 },
    [head(), ...endless(heartbeat)],
    true,
    false,
  ],
  ["total: a whole response that never arrives", { total: 80 }, [], false, false],
];

describe("a timeout fires once it is reached, and not before", () => {
  for (const [name, limits, script, stream, delivered] of bounds) {
    test(name, async () => {
      const { reply, ms } = await ask(limits, script, stream);
      const [limitMs = 0] = Object.values(limits);
      const code = name.includes("error") ? "upstream_error" : "upstream_timeout";
      expect(ms).toBeWithin(limitMs * 0.95, patient / 2);
      expect(errorsIn(reply)).toMatchObject([{ code, metadata: { fault: "upstream" } }]);
      expect([reply.status, saidIn(reply) !== ""]).toEqual([
        delivered ? 200 : code === "upstream_timeout" ? 504 : 502,
        delivered,
      ]);
      expect((await settledRows(scene.gateway)).map(({ status }) => status)).toEqual(
        delivered ? ["cut"] : [],
      );
    });
  }

  test("connect: an unanswered TLS handshake", async () => {
    const silent = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: () => undefined },
    });
    try {
      scene = await startScene({
        acme: {
          base_url: `https://127.0.0.1:${silent.port}/v1`,
          timeouts_ms: timeouts({ connect: 80 }),
        },
      });
      const reply = await readReply(await scene.gateway.post("/chat/completions", chatRequest()));
      expect([reply.status, at(reply.events[0], "error.code")]).toEqual([504, "upstream_timeout"]);
    } finally {
      silent.stop(true);
    }
  });
});

/** Ends after the finish that never come; the answer is complete all the same. */
const openEnds: readonly (readonly [name: string, rest: Script])[] = [
  ["silence after the finish", [...wire.finish.slice(0, 1), stall()]],
  ["silence after the usage", [...wire.finish, stall()]],
  ["endless heartbeats after the finish", [...wire.finish.slice(0, 1), ...endless(heartbeat)]],
  ["endless heartbeats after the usage", [...wire.finish, ...endless(heartbeat)]],
];

describe("a finished response ends soon, whatever its provider still sends", () => {
  for (const [name, rest] of openEnds) {
    test(name, async () => {
      const { reply, ms } = await ask({ idle: 80 }, [
        head(),
        ...wire.opening,
        ...wire.content,
        ...rest,
      ]);
      // Without the limit of silence, the end is waited for for ten seconds.
      expect(ms).toBeLessThan(9_000);
      expect([saidIn(reply), errorsIn(reply), reply.doneCount]).toEqual([fixtureText, [], 1]);
      expect(await settledRows(scene.gateway)).toMatchObject([
        { status: "completed", finishReason: "stop" },
      ]);
    });
  }
});
