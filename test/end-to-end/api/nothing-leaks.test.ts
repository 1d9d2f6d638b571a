import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  acme,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import {
  refusingBaseUrl,
  type FaultUpstream,
  startFaultUpstream,
} from "../../support/upstream/fault-upstream.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { answer, json } from "../../support/upstream/steps.ts";
import { at, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  const refused = refusingBaseUrl();
  gateway = await startGateway({
    providers: [
      acme(upstream.baseUrl),
      acme(refused, {
        id: "gone",
        name: "Gone",
        models: [{ id: "gone/model", pricing: { prompt: "1", completion: "1" } }],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const everything = (response: Response, body: string): string =>
  JSON.stringify([...response.headers]) + body;

test("an upstream error that repeats the provider credential is redacted", async () => {
  upstream.enqueue(
    json(chatError("Incorrect API key provided: upstream-secret."), { status: 401 }),
  );
  const error = await errorOf(await gateway.post("/chat/completions", chatRequest()));
  expect(error.message).toEndWith("Incorrect API key provided: [credential].");
  expect(JSON.stringify({ ...error, headers: [...error.headers] })).not.toContain(
    "upstream-secret",
  );
});

test("upstream addresses are not exposed, even when the connection fails", async () => {
  const error = await errorOf(
    await gateway.post("/chat/completions", chatRequest({ model: "gone/model" })),
  );
  expect(error).toMatchObject({ status: 502, code: "bad_gateway" });
  // The gateway's own documentation is at its own address, which is a loopback one here.
  const text = JSON.stringify({ ...error, headers: [...error.headers] }).replace(
    /"doc_url":"http:\/\/127\.0\.0\.1\/docs\/[^"]*"/,
    "",
  );
  expect(text).not.toMatch(/127\.0\.0\.1|ECONN|localhost/);
});

test("an upstream's HTML page is not relayed", async () => {
  upstream.enqueue(
    answer("<html><body>nginx 1.2.3 at internal-host</body></html>", {
      status: 502,
      headers: { "content-type": "text/html" },
    }),
  );
  const error = await errorOf(await gateway.post("/chat/completions", chatRequest()));
  expect(error).toMatchObject({ status: 502, code: "upstream_error" });
  expect(JSON.stringify(error)).not.toMatch(/nginx|internal-host|<html/);
});

test("upstream headers are not relayed", async () => {
  upstream.enqueue(
    json(
      { id: "x", choices: [{ index: 0, message: { content: "x" }, finish_reason: "stop" }] },
      {
        headers: {
          "set-cookie": "a=b",
          "x-internal": "secret-host",
          "openai-organization": "org-operator",
          "x-ratelimit-remaining-requests": "3",
        },
      },
    ),
  );
  const response = await gateway.post("/chat/completions", chatRequest());
  expect(everything(response, await response.text())).not.toMatch(
    /set-cookie|x-internal|secret-host|org-operator|remaining-requests/,
  );
});

test("the model list exposes no upstream address or credential", async () => {
  for (const path of ["/models?all=1", "/providers", "/openapi.json"]) {
    const response = await gateway.get(path);
    expect(everything(response, await response.text())).not.toMatch(
      /127\.0\.0\.1:\d+\/v1|upstream-secret/,
    );
  }
});

test("logs contain no keys, prompts or responses", async () => {
  const created: unknown = await (
    await gateway.post(
      "/keys",
      { name: "logged" },
      { headers: { authorization: `Bearer ${testManagementKey}` } },
    )
  ).json();
  await gateway.post(
    "/chat/completions",
    chatRequest({ messages: [{ role: "user", content: "my private prompt" }], temperature: 9 }),
  );
  await gateway.post(
    "/chat/completions",
    chatRequest({ messages: [{ role: "user", content: "my private prompt" }] }),
  );
  await gateway.get("/nowhere");
  const logs = gateway.logLines.join("\n");
  expect(gateway.logLines.length).toBeGreaterThan(0);
  for (const secret of [
    testLlmKey,
    testManagementKey,
    "upstream-secret",
    "my private prompt",
    "wörld",
    textAt(created, "key"),
  ])
    expect(logs).not.toContain(secret);
  expect(at(created, "data.name")).toBe("logged");
});
