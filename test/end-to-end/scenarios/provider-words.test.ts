import { afterEach, describe, expect, test } from "bun:test";
import { faults } from "../../support/upstream/faults.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { openaiChatWire as wire } from "../../support/upstream/openai-chat-wire.ts";
import { end, head, json, sse } from "../../support/upstream/steps.ts";
import { at } from "./support/at.ts";
import { errorsIn, readReply, type ChatReply } from "./support/chat-reply.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
afterEach(() => scene.end());

const send = async (changes: Record<string, unknown> = {}): Promise<ChatReply> =>
  readReply(await scene.gateway.post("/chat/completions", chatRequest(changes)));

describe("a provider's error message", () => {
  const words = "Your account 'org-9' is not active 🙁";

  test("reaches the client verbatim, with the provider's status", async () => {
    scene = await startScene();
    scene.acme.script(json(chatError(words, { code: "inactive" }), { status: 403 }));
    const reply = await send();
    expect(at(reply.events[0], "error.metadata")).toMatchObject({
      upstream_backend: "acme",
      upstream_status: 403,
      upstream_message: words,
    });
  });

  test("is reported for every attempt when all attempts fail", async () => {
    scene = await startScene({ withBackup: true });
    scene.acme.script(json(chatError("first"), { status: 500 }));
    scene.backup.script(json(chatError("second"), { status: 503 }));
    const reply = await send();
    expect([reply.status, at(reply.events[0], "error.code")]).toEqual([502, "upstream_exhausted"]);
    expect(at(reply.events[0], "error.metadata")).toMatchObject({
      fault: "upstream",
      upstream_backend: "backup",
      upstream_status: 503,
      upstream_message: "second",
      upstream_attempts: [
        { backend: "acme", status: 500, message: "first" },
        { backend: "backup", status: 503, message: "second" },
      ],
    });
    expect(reply.headers.get("x-should-retry")).toBe("false");
  });

  test("is absent when the provider sent none", async () => {
    scene = await startScene();
    scene.acme.script(faults["closes before answering"].script);
    expect(Object(at((await send()).events[0], "error.metadata"))).not.toHaveProperty(
      "upstream_message",
    );
  });

  test("has its credentials redacted, also on a stream", async () => {
    scene = await startScene();
    const { opening, content } = wire;
    scene.acme.script([
      head(),
      ...opening,
      ...content,
      sse(chatError("Key upstream-secret is over its quota")),
      end(),
    ]);
    expect(errorsIn(await send({ stream: true }))).toMatchObject([
      { metadata: { upstream_message: "Key [credential] is over its quota" } },
    ]);
  });

  test("is on the event that ends a stream", async () => {
    scene = await startScene();
    scene.acme.script(faults["error mid-stream"].script);
    expect(errorsIn(await send({ stream: true }))).toMatchObject([
      {
        metadata: {
          fault: "upstream",
          upstream_backend: "acme",
          upstream_message: "The fixture failed.",
        },
      },
    ]);
  });
});
