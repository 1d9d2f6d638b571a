import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { acme, startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { chatStream } from "../../support/upstream/healthy-chat.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatChunks, chatError, fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import { head, json, sse } from "../../support/upstream/steps.ts";
import { failureOf, openaiClient } from "./openai-client.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({ providers: [acme(upstream.baseUrl)] });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const request = { model: "acme/large", messages: [{ role: "user" as const, content: "Hello" }] };
const create = (
  openai: OpenAI,
  fields: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming> = {},
): PromiseLike<unknown> => openai.chat.completions.create({ ...request, ...fields });

/** What goes wrong, and the client's class and code for it. */
const classes: readonly [
  string,
  () => PromiseLike<unknown>,
  new (...parts: never[]) => Error,
  string,
][] = [
  [
    "an unknown key",
    () => create(openaiClient(gateway, { apiKey: "sk-svc-v1-nobody" })),
    OpenAI.AuthenticationError,
    "invalid_api_key",
  ],
  [
    "a management key",
    () => create(openaiClient(gateway, { apiKey: testManagementKey })),
    OpenAI.AuthenticationError,
    "unauthorized",
  ],
  [
    "an invalid field",
    () => create(openaiClient(gateway), { temperature: 9 }),
    OpenAI.BadRequestError,
    "bad_request",
  ],
  [
    "an unknown model",
    () => create(openaiClient(gateway), { model: "acme/none" }),
    OpenAI.NotFoundError,
    "model_unavailable",
  ],
  [
    "an unknown record",
    () => openaiClient(gateway).models.retrieve("acme/none"),
    OpenAI.NotFoundError,
    "not_found",
  ],
];

test.each(classes)(
  "%s throws the client's own error class, with the code and request id",
  async (_, work, kind, code) => {
    const error = await failureOf(work);
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ code, requestID: expect.stringMatching(/^[0-9a-f]{32}$/) });
  },
);

test("the error's param names the field", async () => {
  expect(await failureOf(() => create(openaiClient(gateway), { temperature: 9 }))).toMatchObject({
    status: 400,
    param: "temperature",
    type: "invalid_request_error",
  });
});

test.each([
  [429, OpenAI.RateLimitError],
  [500, OpenAI.InternalServerError],
  [422, OpenAI.UnprocessableEntityError],
] as const)("an upstream %d throws the client's matching error class", async (status, kind) => {
  upstream.enqueue(json(chatError("no"), { status }));
  const error = await failureOf(() => create(openaiClient(gateway)));
  expect(error).toBeInstanceOf(kind);
  expect(String(error)).toContain("no");
});

describe("retries", () => {
  const sentDuring = async (work: () => PromiseLike<unknown>): Promise<number> => {
    const before = upstream.requests.length;
    await work().then(
      () => undefined,
      () => undefined,
    );
    return upstream.requests.length - before;
  };
  const patient = (): OpenAI => openaiClient(gateway, { maxRetries: 2 });

  test.each([400, 401, 403, 404, 422])(
    "are not made when x-should-retry forbids them: an upstream's %d",
    async (status) => {
      upstream.enqueue(json(chatError("no"), { status }));
      expect(await sentDuring(() => create(patient()))).toBe(1);
    },
  );

  test("are made when they may help, and succeed", async () => {
    upstream.enqueue(json(chatError("no"), { status: 503 }));
    expect(
      await sentDuring(async () =>
        expect(await create(patient())).toMatchObject({ model: "acme/large" }),
      ),
    ).toBe(2);
  });

  test("are not made for permanent errors of the gateway", async () => {
    expect(await sentDuring(() => create(patient(), { model: "acme/none" }))).toBe(0);
    expect(await failureOf(() => create(patient(), { temperature: 9 }))).toBeInstanceOf(
      OpenAI.BadRequestError,
    );
  });
});

describe("streams", () => {
  test("an upstream failure before content is an HTTP error", async () => {
    upstream.enqueue(json(chatError("no"), { status: 500 }));
    expect(
      await failureOf(() =>
        openaiClient(gateway).chat.completions.stream(request).finalChatCompletion(),
      ),
    ).toBeInstanceOf(OpenAI.InternalServerError);
  });

  test("an error after content is thrown to the reader", async () => {
    const events = chatChunks()
      .slice(0, 3)
      .map((chunk) => sse(chunk));
    upstream.enqueue([head(), ...events, sse(chatError("broke"))]);
    const error = await failureOf(() =>
      openaiClient(gateway).chat.completions.stream(request).finalChatCompletion(),
    );
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(String(error)).toContain("broke");
  });

  test("aborting a stream aborts the upstream request, and the client can continue", async () => {
    const gate = upstream.gate();
    const ordinal = upstream.requests.length + 1;
    const [first, ...rest] = chatStream();
    upstream.enqueue([
      ...(first === undefined ? [] : [first]),
      ...rest.slice(0, 3),
      gate,
      ...rest.slice(3),
    ]);
    const openai = openaiClient(gateway);
    const stream = await openai.chat.completions.create({ ...request, stream: true });
    for await (const chunk of stream)
      if (chunk.choices[0]?.delta.content) stream.controller.abort();
    await (await upstream.waitForRequest(ordinal)).aborted;
    const after = await openai.chat.completions.create(request);
    expect(after.choices[0]?.message.content).toBe(fixtureText);
  });
});
