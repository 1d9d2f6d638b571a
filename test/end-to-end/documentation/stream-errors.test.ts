import { afterAll, beforeAll, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatChunks } from "../../support/upstream/openai-chat-fixtures.ts";
import { cut, head, sse } from "../../support/upstream/steps.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  upstream.script([
    head({ headers: { "content-type": "text/event-stream" } }),
    ...chatChunks({ text: ["One", " two"] })
      .slice(0, 2)
      .map((chunk) => sse(chunk)),
    cut(),
  ]);
  gateway = await startGateway({
    providers: [acme(upstream.baseUrl, { models: [{ id: "acme/tiny:free" }] })],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const messages = [{ role: "user", content: "Hi" }];

test.each([
  ["/chat/completions", { messages }],
  ["/messages", { messages, max_tokens: 20 }],
  ["/responses", { input: "Hi", store: false }],
] as const)(
  "the error event of a stream of %s links to its code in the documentation",
  async (path, body) => {
    const response = await gateway.post(path, { ...body, model: "acme/tiny:free", stream: true });
    expect(response.status).toBe(200);
    const text = await response.text();
    const [, address = ""] = /"doc_url":"([^"]+)"/.exec(text) ?? [];
    const { pathname, hash } = new URL(address);
    const page = await (await fetch(`${gateway.origin}${pathname}`)).text();
    expect([hash.length > 1, page.includes(`<h2 id="${hash.slice(1)}">`)]).toEqual([true, true]);
  },
);
