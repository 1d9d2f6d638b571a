import type Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import {
  startStrictUpstream,
  type StrictUpstream,
} from "../../support/strict-vendors/strict-upstream.ts";
import { at, textAt } from "../api/at.ts";
import { missingPackage, runScript } from "../clients/python/run-script.ts";
import { testClient } from "../clients/support/test-clients-folder.ts";
import { amazonEvents } from "./support/amazon-events.ts";

const model = "anthropic/claude-sonnet-4-5";
const profile = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const sandbox = "sandbox/chat:free";

let upstream: StrictUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startStrictUpstream();
  gateway = await startGateway({
    sandbox: true,
    providers: [
      provider({ id: "anthropic", base_url: upstream.baseUrl("anthropic"), api_key: "k" }),
    ],
    aliases: { [profile]: model },
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});
beforeEach(() => upstream.forget());

const send = (
  path: string,
  body: unknown,
  { key = testLlmKey, headers = {} }: { key?: string; headers?: Record<string, string> } = {},
): Promise<Response> =>
  fetch(gateway.origin + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

const invoke = (id: string, body: unknown, verb = "invoke", key = testLlmKey): Promise<Response> =>
  send(`/model/${encodeURIComponent(id)}/${verb}`, body, { key });

const vertexPath = (id: string, method: string, version = "v1"): string =>
  `/${version}/projects/any/locations/us-east5/publishers/anthropic/models/${id}:${method}`;

const messages = [{ role: "user", content: "hello" }];
const forBedrock = { anthropic_version: "bedrock-2023-05-31", max_tokens: 300, messages };
const forVertex = { ...forBedrock, anthropic_version: "vertex-2023-10-16" };

/** Returns the events of Messages in the chunks of a binary stream. */
const chunksOf = async (response: Response): Promise<unknown[]> =>
  (await amazonEvents(response)).map(({ type, payload }) => {
    expect(type).toBe("chunk");
    return JSON.parse(Buffer.from(textAt(payload, "bytes"), "base64").toString("utf8"));
  });

/** Returns the events of a stream of Messages. */
const sseOf = async (response: Response): Promise<unknown[]> =>
  (await response.text())
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice("data: ".length)) as unknown);

const textOf = (events: readonly unknown[]): string =>
  events.map((event) => at(event, "delta.text") ?? "").join("");

describe("Bedrock's InvokeModel", () => {
  test("reaches Claude as the request that it is, with its betas as a header", async () => {
    const body = {
      ...forBedrock,
      anthropic_beta: ["context-1m-2025-08-07", "interleaved-thinking-2025-05-14"],
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
      tools: [{ name: "look", input_schema: { type: "object" } }],
    };
    const response = await invoke(profile, body);
    const answer: unknown = await response.json();
    expect([response.status, answer]).toMatchObject([
      200,
      { type: "message", role: "assistant", content: [{ type: "text", text: "Understood." }] },
    ]);
    expect(at(answer, "usage.cost")).toBeGreaterThan(0);
    const received = upstream.received.at(-1);
    expect(received?.body).toEqual({
      model: "claude-sonnet-4-5",
      stream: false,
      max_tokens: 300,
      messages,
      system: body.system,
      tools: body.tools,
    });
    expect(received?.headers).toMatchObject({
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "context-1m-2025-08-07,interleaved-thinking-2025-05-14",
    });
    const record: unknown = await (
      await gateway.get(`/generation/${response.headers.get("x-service-trace-id")}`)
    ).json();
    expect(at(record, "data.surface")).toBe("messages");
  });

  test("streams chunks of bytes on any model, the last with Amazon's counts", async () => {
    for (const id of [profile, sandbox]) {
      const whole: unknown = await (await invoke(id, forBedrock)).json();
      const events = await chunksOf(await invoke(id, forBedrock, "invoke-with-response-stream"));
      expect(at(events[0], "type")).toBe("message_start");
      expect(textOf(events)).toBe(textAt(whole, "content.0.text"));
      expect(events.at(-1)).toMatchObject({
        type: "message_stop",
        "amazon-bedrock-invocationMetrics": {
          inputTokenCount: at(whole, "usage.input_tokens"),
          outputTokenCount: at(whole, "usage.output_tokens"),
          invocationLatency: expect.any(Number),
        },
      });
    }
  });

  test("takes the slash of an id as it is", async () => {
    const response = await send(`/model/${sandbox}/invoke`, forBedrock);
    expect([response.status, response.headers.get("x-service-model")]).toEqual([200, sandbox]);
  });

  test("counts tokens of both forms", async () => {
    const converse = { messages: [{ role: "user", content: [{ text: "hello" }] }] };
    const body = Buffer.from(JSON.stringify(forBedrock)).toString("base64");
    for (const input of [{ converse }, { invokeModel: { body } }]) {
      const response = await invoke(sandbox, { input }, "count-tokens");
      expect(await response.json()).toEqual({ inputTokens: expect.any(Number) });
      expect(response.headers.get("x-service-token-count")).toBe("estimated");
    }
    const refused = await invoke(sandbox, { input: {} }, "count-tokens");
    expect(refused.status).toBe(400);
  });

  test.each<[what: string, id: string, body: object, key: string, status: number, type: string]>([
    ["an unknown model", "no/such", forBedrock, testLlmKey, 404, "ResourceNotFoundException"],
    [
      "a key that is none",
      sandbox,
      forBedrock,
      "sk-svc-v1-none",
      401,
      "UnrecognizedClientException",
    ],
    ["another vendor's body", sandbox, { prompt: "hi" }, testLlmKey, 400, "ValidationException"],
    [
      "no messages",
      sandbox,
      { ...forBedrock, messages: undefined },
      testLlmKey,
      400,
      "ValidationException",
    ],
  ])("refuses %s by Bedrock's names", async (_, id, body, key, status, type) => {
    for (const verb of ["invoke", "invoke-with-response-stream"]) {
      const response = await invoke(id, body, verb, key);
      const error: unknown = await response.json();
      expect([response.status, at(error, "__type")]).toEqual([status, type]);
    }
  });

  test("refuses to stream vectors, and says so", async () => {
    const response = await invoke(sandbox, { inputText: "hi" }, "invoke-with-response-stream");
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { __type: "ValidationException", message: expect.stringContaining("not streamed") },
    ]);
  });

  test("the gateway's own client of Bedrock reads it: a gateway behind a gateway", async () => {
    const front = await startGateway({
      providers: [
        provider({
          id: "behind",
          like: "amazon-bedrock",
          base_url: gateway.origin,
          api_key: testLlmKey,
          models: [
            {
              id: "behind/chat",
              upstream_model: profile,
              context_length: 100_000,
              pricing: { prompt: "1", completion: "1" },
            },
          ],
        }),
      ],
    });
    try {
      const body = { model: "behind/chat", max_tokens: 300, messages };
      const whole: unknown = await (await front.post("/messages", body)).json();
      const events = await sseOf(await front.post("/messages", { ...body, stream: true }));
      expect(textAt(whole, "content.0.text")).not.toBe("");
      expect(textOf(events)).toBe(textAt(whole, "content.0.text"));
    } finally {
      await front.stop();
    }
  });
});

describe("Vertex AI", () => {
  test("serves Messages whole and streamed, on any model", async () => {
    for (const id of ["claude-sonnet-4-5@20250929", sandbox, encodeURIComponent(sandbox)])
      for (const version of ["v1", "v1beta1"]) {
        const whole = await send(vertexPath(id, "rawPredict", version), forVertex);
        const answer: unknown = await whole.json();
        expect([id, whole.status]).toEqual([id, 200]);
        const streamed = await send(vertexPath(id, "streamRawPredict", version), forVertex);
        expect(streamed.headers.get("content-type")).toStartWith("text/event-stream");
        expect(textOf(await sseOf(streamed))).toBe(textAt(answer, "content.0.text"));
      }
  });

  test("counts tokens of the model that the body names", async () => {
    const response = await send(vertexPath("count-tokens", "rawPredict"), {
      anthropic_version: "vertex-2023-10-16",
      model: sandbox,
      messages,
    });
    expect(await response.json()).toEqual({ input_tokens: expect.any(Number) });
  });

  test("errors have the form of Messages", async () => {
    for (const [id, method, body, status, type] of [
      ["no/such", "rawPredict", forVertex, 404, "not_found_error"],
      [sandbox, "rawPredict", { messages }, 400, "invalid_request_error"],
      [sandbox, "predict", forVertex, 404, "not_found_error"],
    ] as const) {
      const response = await send(vertexPath(id, method), body);
      const error: unknown = await response.json();
      expect([id, method, response.status, at(error, "error.type")]).toEqual([
        id,
        method,
        status,
        type,
      ]);
    }
  });

  test("serves Google's dialect below a project and without one", async () => {
    const asked = { contents: [{ role: "user", parts: [{ text: "hello" }] }] };
    for (const path of [
      "/v1/projects/p/locations/global/publishers/sandbox/models/chat:free:generateContent",
      "/v1beta1/projects/p/locations/global/publishers/google/models/sandbox/chat:free:generateContent",
      "/v1beta1/publishers/sandbox/models/chat:free:generateContent",
    ]) {
      const response = await send(path, asked);
      expect([path, response.status, response.headers.get("x-service-model")]).toEqual([
        path,
        200,
        sandbox,
      ]);
    }
  });
});

const missing = missingPackage("python", "anthropic") ?? missingPackage("s3-server", "botocore");
test.skipIf(missing !== undefined)(
  `Anthropic's clients of Python for both reach any model${missing ? ` (missing: ${missing})` : ""}`,
  async () => {
    const script = join(import.meta.dir, "anthropic_clouds.py");
    const parameters = [gateway.origin, testLlmKey];
    const served = {
      stop: "end_turn",
      streamed: true,
      tokens: true,
      beta: "end_turn",
      refused: 404,
    };
    expect(await runScript(script, { group: ["python", "s3-server"], parameters })).toEqual({
      bedrock: served,
      vertex: { ...served, counted: true },
    });
  },
);

/** The parts of Anthropic's clients that are asked for here. */
interface CloudClient {
  messages: Pick<Anthropic["messages"], "create" | "stream" | "countTokens">;
  beta: { messages: Pick<Anthropic["beta"]["messages"], "create"> };
}

type CloudClass = new (options: object) => CloudClient;

const lacksNpm = missingPackage("cloud-clients/node_modules", "@anthropic-ai/bedrock-sdk");
describe.skipIf(lacksNpm !== undefined)("Anthropic's clients of npm", () => {
  const clientOf = {
    async bedrock(credentials: object): Promise<CloudClient> {
      const { AnthropicBedrock } = (await testClient(
        "cloud-clients",
        "@anthropic-ai/bedrock-sdk",
      )) as { AnthropicBedrock: CloudClass };
      const place = { awsRegion: "us-east-1", baseURL: gateway.origin, maxRetries: 0 };
      return new AnthropicBedrock({ ...place, ...credentials });
    },
    async vertex(): Promise<CloudClient> {
      const { AnthropicVertex } = (await testClient(
        "cloud-clients",
        "@anthropic-ai/vertex-sdk",
      )) as { AnthropicVertex: CloudClass };
      const { OAuth2Client } = (await testClient("cloud-clients", "google-auth-library")) as {
        OAuth2Client: new () => { setCredentials(credentials: object): void };
      };
      const authClient = new OAuth2Client();
      authClient.setCredentials({ access_token: testLlmKey });
      const place = { projectId: "p", region: "us-east5", baseURL: `${gateway.origin}/v1` };
      return new AnthropicVertex({ ...place, authClient, maxRetries: 0 });
    },
  };
  const asked = {
    ...{ model: sandbox, max_tokens: 300 },
    messages: [{ role: "user" as const, content: "hello" }],
  };
  const tools = [{ name: "look", input_schema: { type: "object" as const } }];
  const saying = (content: string) => ({
    ...asked,
    messages: [{ role: "user" as const, content }],
  });
  const statusOf = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => "no error",
      (error: unknown) => at(error, "status"),
    );

  test.each(["bedrock", "vertex"] as const)("for %s reach any model", async (cloud) => {
    const client = await clientOf[cloud]({ apiKey: testLlmKey });
    const whole = await client.messages.create(asked);
    const streamed = await client.messages.stream(asked).finalMessage();
    expect<unknown>(streamed.content).toEqual(whole.content);
    expect(streamed.usage.output_tokens).toBe(whole.usage.output_tokens);
    const called = await client.messages.create({ ...saying("find sandbox:calls=2"), tools });
    const uses = called.content.filter((block) => block.type === "tool_use");
    expect(uses).toHaveLength(2);
    const results = uses.map(({ id }) => ({
      ...{ type: "tool_result" as const, tool_use_id: id, content: "found" },
    }));
    const answered = await client.messages.create({
      ...{ ...asked, tools },
      messages: [
        ...saying("find sandbox:calls=2").messages,
        { role: "assistant", content: called.content },
        { role: "user", content: results },
      ],
    });
    expect(answered.stop_reason).toBe("end_turn");
    const betas = ["context-1m-2025-08-07" as const];
    expect((await client.beta.messages.create({ ...asked, betas })).stop_reason).toBe("end_turn");
    const { model, messages: said } = asked;
    const counted = await client.messages.countTokens({ model, messages: said });
    expect(counted.input_tokens).toBeGreaterThan(0);
    expect(await statusOf(client.messages.create({ ...asked, model: "no/such" }))).toBe(404);
    const broken = client.messages.stream(saying("sandbox:error_after=3")).finalMessage();
    expect(await statusOf(broken)).toBe(502);
  });

  test("for Bedrock are told what to send in place of a signature", async () => {
    const client = await clientOf.bedrock({
      apiKey: null,
      awsAccessKey: "AKIA",
      awsSecretKey: "s",
    });
    const error: unknown = await client.messages.create(asked).catch((thrown: unknown) => thrown);
    expect(at(error, "status")).toBe(401);
    expect(textAt(error, "message")).toContain("AWS_BEARER_TOKEN_BEDROCK");
  });
});

const lacksGoogle = missingPackage("python-google", "google/genai");
test.skipIf(lacksGoogle !== undefined)(
  `Google's client of Python, set to Vertex AI, reaches any model${lacksGoogle ? ` (missing: ${lacksGoogle})` : ""}`,
  async () => {
    const script = join(import.meta.dir, "vertex_google.py");
    const served = {
      finish: "STOP",
      streamed: true,
      calls: ["look"],
      answered: true,
      shaped: ["a"],
      vectors: [8, 8],
      counted: true,
      listed: true,
      shown: "publishers/sandbox/models/chat:free",
      refusals: [
        [404, "NOT_FOUND"],
        [429, "RESOURCE_EXHAUSTED"],
      ],
    };
    const parameters = [gateway.origin, testLlmKey];
    expect(await runScript(script, { group: "python-google", parameters })).toEqual({
      project: served,
      express: served,
    });
  },
);
