import { afterEach, describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { faults } from "../../support/upstream/faults.ts";
import type { Script } from "../../support/upstream/steps.ts";
import { at } from "./support/at.ts";
import { readReply, type ChatReply } from "./support/chat-reply.ts";
import { createKey } from "./support/create-key.ts";
import { whileRefusing } from "./support/refusing-database.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
afterEach(() => scene.end());

const send = async (
  changes: Record<string, unknown> = {},
  secret = testLlmKey,
): Promise<ChatReply> =>
  readReply(
    await scene.gateway.post("/chat/completions", chatRequest(changes), {
      headers: { authorization: `Bearer ${secret}` },
    }),
  );

/** A refusal, and whose fault it is: one status may come from any of the three. */
interface Refusal {
  name: string;
  status: number;
  fault: "client" | "gateway" | "upstream";
  ask: () => Promise<ChatReply>;
}

const fromProvider =
  (script: Script): Refusal["ask"] =>
  () => {
    scene.acme.script(script);
    return send();
  };

const refusals: readonly Refusal[] = [
  {
    name: "an invalid body",
    status: 400,
    fault: "client",
    ask: () => send({ messages: 5 }),
  },
  {
    name: "the provider's 400",
    status: 400,
    fault: "upstream",
    ask: fromProvider(faults["400"].script),
  },
  {
    name: "an unknown key",
    status: 401,
    fault: "client",
    ask: () => send({}, "sk-svc-v1-unknown"),
  },
  {
    name: "the provider's 401",
    status: 502,
    fault: "upstream",
    ask: fromProvider(faults["401"].script),
  },
  {
    name: "a key at its limit",
    status: 402,
    fault: "client",
    ask: async () => send({}, await createKey(scene.gateway, { limit: 0 })),
  },
  {
    name: "the provider's 402",
    status: 502,
    fault: "upstream",
    ask: fromProvider(faults["402"].script),
  },
  {
    name: "a key without the model",
    status: 403,
    fault: "client",
    ask: async () => send({}, await createKey(scene.gateway, { allowed_models: ["a/b"] })),
  },
  {
    name: "the provider's 403",
    status: 502,
    fault: "upstream",
    ask: fromProvider(faults["403"].script),
  },
  {
    name: "an unknown model",
    status: 404,
    fault: "client",
    ask: () => send({ model: "acme/none" }),
  },
  {
    name: "the provider's 404",
    status: 404,
    fault: "upstream",
    ask: fromProvider(faults["404"].script),
  },
  {
    name: "a key at its rate limit",
    status: 429,
    fault: "client",
    async ask() {
      const secret = await createKey(scene.gateway, { rate_limit: 1 });
      await send({}, secret);
      return send({}, secret);
    },
  },
  {
    name: "the provider's 429",
    status: 429,
    fault: "upstream",
    ask: fromProvider(faults["429"].script),
  },
  {
    name: "a database that rejects writes",
    status: 503,
    fault: "gateway",
    ask: () => whileRefusing(scene.gateway, () => send()),
  },
  {
    name: "the provider's 503",
    status: 502,
    fault: "upstream",
    ask: fromProvider(faults["503"].script),
  },
];

describe("an error names who refused the request", () => {
  for (const { name, status, fault, ask } of refusals) {
    test(`${name}: ${fault}`, async () => {
      scene = await startScene();
      const reply = await ask();
      const metadata = at(reply.events[0], "error.metadata");
      expect([reply.status, at(metadata, "fault")]).toEqual([status, fault]);
      expect(at(metadata, "upstream_backend")).toBe(fault === "upstream" ? "acme" : undefined);
    });
  }
});
