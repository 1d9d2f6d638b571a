import { afterEach, describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "./support/at.ts";
import { errorsIn, readReply } from "./support/chat-reply.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
afterEach(() => scene.end());

const refusal = {
  error: {
    message: "'temperature' is not in range",
    type: "invalid_request_error",
    param: "temperature",
    code: "out_of_range",
  },
};

/** Bodies of the routes that ask a provider, which none of them gets to. */
const routes: Readonly<Record<string, Record<string, unknown>>> = {
  "/chat/completions": chatRequest({ temperature: 1 }),
  "/messages": chatRequest({ temperature: 1, max_tokens: 100 }),
  "/responses": { model: "acme/large", input: "Hello", temperature: 1 },
};

describe("an error after a provider was asked names the provider and relays its message", () => {
  for (const [path, body] of Object.entries(routes)) {
    for (const stream of [false, true]) {
      test(`${path}${stream ? ", streamed" : ""}`, async () => {
        scene = await startScene();
        scene.acme.script(json(refusal, { status: 400 }));
        const response = await scene.gateway.post(path, { ...body, stream });
        const { error } = (await response.json()) as { error: unknown };
        expect(response.status).toBe(400);
        expect(response.headers.get("x-service-provider-chain")).toBe("acme");
        expect(response.headers.get("x-service-model")).toBe("acme/large");
        expect(response.headers.get("x-service-credential-source")).toBe("platform");
        expect(response.headers.get("server-timing")).toMatch(
          /^gw;dur=[\d.]+, upstream;dur=[\d.]+;desc="acme", post;dur=/,
        );
        expect(at(error, "metadata.upstream_error")).toEqual({
          type: "invalid_request_error",
          param: "temperature",
          code: "out_of_range",
        });
        expect(at(error, "metadata.trace_id")).toMatch(/^[0-9a-f]{32}$/);
        if (path !== "/messages") expect(at(error, "param")).toBe("temperature");
      });
    }
  }

  test("has no param for a field that the client did not send", async () => {
    scene = await startScene();
    scene.acme.script(json(refusal, { status: 400 }));
    const reply = await readReply(await scene.gateway.post("/chat/completions", chatRequest()));
    expect(errorsIn(reply)).toMatchObject([
      { param: null, metadata: { upstream_error: { param: "temperature" } } },
    ]);
  });

  test("redacts a credential that the provider repeats", async () => {
    scene = await startScene();
    scene.acme.script(({ headers }) => {
      const [key = ""] = /[^ ]+$/.exec(headers.get("authorization") ?? "") ?? [];
      return json({ error: { message: "no", param: key } }, { status: 400 });
    });
    const reply = await readReply(await scene.gateway.post("/chat/completions", chatRequest()));
    expect([reply.status, at(errorsIn(reply)[0], "metadata.upstream_error")]).toEqual([
      400,
      undefined,
    ]);
  });
});

test("an error before any provider was asked names no provider", async () => {
  scene = await startScene();
  const response = await scene.gateway.post(
    "/chat/completions",
    chatRequest({ model: "acme/nowhere" }),
  );
  await response.text();
  expect([response.status, response.headers.get("x-service-provider-chain")]).toEqual([404, null]);
});

describe("Messages accepts either of two credentials if one is valid", () => {
  const bad = "sk-svc-v1-not-a-key-of-this-gateway-0000000000";
  const cases: readonly [authorization: string, apiKey: string, status: number][] = [
    [`Bearer ${bad}`, testLlmKey, 200],
    ["Basic dXNlcjpwYXNz", testLlmKey, 200],
    [`Bearer ${testLlmKey}`, bad, 200],
    [`Bearer ${bad}`, bad, 401],
  ];
  test.each([...cases])(
    "authorization %s, x-api-key %s: %d",
    async (authorization, apiKey, status) => {
      scene = await startScene();
      const body = { ...chatRequest(), max_tokens: 100 };
      const response = await scene.gateway.post("/messages", body, {
        headers: { authorization, "x-api-key": apiKey },
      });
      await response.text();
      expect(response.status).toBe(status);
    },
  );
});

test("a key is read where Portkey's SDKs send it, beside a placeholder of their own", async () => {
  scene = await startScene();
  const sent = (key: string): Promise<Response> =>
    scene.gateway.post("/chat/completions", chatRequest(), {
      headers: { authorization: "Bearer OPENAI_API_KEY", "x-portkey-api-key": key },
    });
  expect([(await sent(testLlmKey)).status, (await sent("pk")).status]).toEqual([200, 401]);
});
