import { afterEach, describe, expect, test } from "bun:test";
import { sql } from "kysely";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { faults } from "../../support/upstream/faults.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { openaiChatWire as wire } from "../../support/upstream/openai-chat-wire.ts";
import { end, head, json, sse, type Script } from "../../support/upstream/steps.ts";
import { at } from "./support/at.ts";
import { errorsIn, readReply, type ChatReply } from "./support/chat-reply.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
afterEach(() => scene.end());

const send = async (changes: Record<string, unknown> = {}, secret = testLlmKey): Promise<ChatReply> =>
  readReply(await scene.gateway.post("/chat/completions", chatRequest(changes), { headers: { authorization: `Bearer ${secret}` } }));

async function createKey(fields: Record<string, unknown>): Promise<string> {
  const response = await scene.gateway.post("/keys", { name: "k", ...fields }, { headers: { authorization: `Bearer ${testManagementKey}` } });
  return String(at(await response.json(), "key"));
}

/** The same status from the client's mistake, the gateway's and the provider's can be told apart. */
interface Refusal {
  name: string;
  status: number;
  fault: "client" | "gateway" | "upstream";
  ask: () => Promise<ChatReply>;
}

const fromProvider = (script: Script): Refusal["ask"] => () => {
  scene.acme.script(script);
  return send();
};

const refusals: readonly Refusal[] = [
  { name: "a body that is no request", status: 400, fault: "client", ask: () => send({ messages: 5 }) },
  { name: "the provider's 400", status: 400, fault: "upstream", ask: fromProvider(faults["400"].script) },
  { name: "an unknown key", status: 401, fault: "client", ask: () => send({}, "sk-svc-v1-unknown") },
  { name: "the provider's 401", status: 502, fault: "upstream", ask: fromProvider(faults["401"].script) },
  { name: "a key at its limit", status: 402, fault: "client", ask: async () => send({}, await createKey({ limit: 0 })) },
  { name: "the provider's 402", status: 502, fault: "upstream", ask: fromProvider(faults["402"].script) },
  { name: "a key without the model", status: 403, fault: "client", ask: async () => send({}, await createKey({ allowed_models: ["a/b"] })) },
  { name: "the provider's 403", status: 502, fault: "upstream", ask: fromProvider(faults["403"].script) },
  { name: "an unknown model", status: 404, fault: "client", ask: () => send({ model: "acme/none" }) },
  { name: "the provider's 404", status: 404, fault: "upstream", ask: fromProvider(faults["404"].script) },
  {
    name: "a key at its rate", status: 429, fault: "client",
    async ask() {
      const secret = await createKey({ rate_limit: 1 });
      await send({}, secret);
      return send({}, secret);
    },
  },
  { name: "the provider's 429", status: 429, fault: "upstream", ask: fromProvider(faults["429"].script) },
  {
    name: "a database that refuses", status: 503, fault: "gateway",
    async ask() {
      const { database } = scene.gateway.app.storage;
      await sql`create trigger refuse before insert on generations begin select raise(abort, 'refused'); end`.execute(database);
      const reply = await send();
      await sql`drop trigger refuse`.execute(database);
      scene.gateway.logLines.splice(0);
      return reply;
    },
  },
  { name: "the provider's 503", status: 502, fault: "upstream", ask: fromProvider(faults["503"].script) },
];

describe("an error says who refused", () => {
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

describe("a provider's own words", () => {
  const words = "Your account 'org-9' is not active 🙁";

  test("reach the client verbatim, with the status that came with them", async () => {
    scene = await startScene();
    scene.acme.script(json(chatError(words, { code: "inactive" }), { status: 403 }));
    const reply = await send();
    expect(at(reply.events[0], "error.metadata")).toMatchObject({ upstream_backend: "acme", upstream_status: 403, upstream_message: words });
  });

  test("of every attempt, where all of them failed", async () => {
    scene = await startScene({ withBackup: true });
    scene.acme.script(json(chatError("first"), { status: 500 }));
    scene.backup.script(json(chatError("second"), { status: 503 }));
    const reply = await send();
    expect([reply.status, at(reply.events[0], "error.code")]).toEqual([502, "upstream_exhausted"]);
    expect(at(reply.events[0], "error.metadata")).toMatchObject({
      fault: "upstream", upstream_backend: "backup", upstream_status: 503, upstream_message: "second",
      upstream_attempts: [{ backend: "acme", status: 500, message: "first" }, { backend: "backup", status: 503, message: "second" }],
    });
    expect(reply.headers.get("x-should-retry")).toBe("false");
  });

  test("are nobody's where the provider said nothing", async () => {
    scene = await startScene();
    scene.acme.script(faults["closes before answering"].script);
    expect(Object(at((await send()).events[0], "error.metadata"))).not.toHaveProperty("upstream_message");
  });

  test("do not give away the credential that they repeat, on a stream either", async () => {
    scene = await startScene();
    const { opening, content } = wire;
    scene.acme.script([head(), ...opening, ...content, sse(chatError("Key upstream-secret is over its quota")), end()]);
    expect(errorsIn(await send({ stream: true }))).toMatchObject([{ metadata: { upstream_message: "Key [credential] is over its quota" } }]);
  });

  test("stand on the event that ends a stream", async () => {
    scene = await startScene();
    scene.acme.script(faults["error mid-stream"].script);
    expect(errorsIn(await send({ stream: true }))).toMatchObject([{ metadata: { fault: "upstream", upstream_backend: "acme", upstream_message: "The fixture failed." } }]);
  });
});
