import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { systemClock } from "../../../platform/kernel/clock.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { CanonicalResponse } from "../../canonical/response.ts";
import type { UpstreamDialect } from "../../dialects/dialect.ts";
import { amazonConverse } from "../../dialects/amazon-converse/index.ts";
import { anthropicMessages } from "../../dialects/anthropic-messages/index.ts";
import { googleGenerate } from "../../dialects/google-generate/index.ts";
import { openEventStream } from "../../upstream/event-stream-decoder.ts";
import { AbortScope } from "../../upstream/abort-scope.ts";
import { createSigner, postFormThrough } from "../../upstream/signing/create-signer.ts";
import { SseDecoder } from "../../upstream/sse-decoder.ts";
import { UpstreamClient, upstreamTarget } from "../../upstream/upstream-client.ts";
import { amazonBedrock } from "./amazon-bedrock.ts";
import { endpointPath, fitToEndpoint } from "../endpoint.ts";
import { googleVertex, googleVertexAnthropic } from "./google-vertex.ts";
import type { Environment, ProviderDefinition } from "../provider-definition.ts";

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const client = new UpstreamClient({ clock: systemClock });
const seen: { path: string; headers: Headers; body: Record<string, unknown> }[] = [];

const claudeEvents = [
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude",
      content: [],
      usage: { input_tokens: 3, output_tokens: 1 },
    },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Łódź" } },
  { type: "content_block_stop", index: 0 },
  {
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: 4 },
  },
  { type: "message_stop" },
];
const converseEvents: readonly (readonly [type: string, payload: object])[] = [
  ["messageStart", { role: "assistant" }],
  ["contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Łódź" } }],
  ["contentBlockStop", { contentBlockIndex: 0 }],
  ["messageStop", { stopReason: "end_turn" }],
  ["metadata", { usage: { inputTokens: 3, outputTokens: 4, totalTokens: 7 } }],
];
const geminiChunk = {
  candidates: [{ content: { role: "model", parts: [{ text: "Łódź" }] }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4 },
  responseId: "msg_1",
  modelVersion: "gemini",
};

const sse = (events: readonly object[]): Response =>
  new Response(
    events
      .map(
        (event) =>
          `${"type" in event ? `event: ${String(event.type)}\n` : ""}data: ${JSON.stringify(event)}\n\n`,
      )
      .join(""),
    { headers: { "content-type": "text/event-stream" } },
  );

/** A message of Amazon's event stream, framed here from the format's description. */
function frame(type: string, payload: object): Buffer {
  const header = (name: string, value: string): Buffer =>
    Buffer.concat([
      Buffer.from([name.length]),
      Buffer.from(name),
      Buffer.from([7, 0, value.length]),
      Buffer.from(value),
    ]);
  const headers = Buffer.concat([header(":event-type", type), header(":message-type", "event")]);
  const body = Buffer.from(JSON.stringify(payload));
  const message = Buffer.alloc(16 + headers.length + body.length);
  message.writeUInt32BE(message.length, 0);
  message.writeUInt32BE(headers.length, 4);
  message.writeUInt32BE(Bun.hash.crc32(message.subarray(0, 8)), 8);
  headers.copy(message, 12);
  body.copy(message, 12 + headers.length);
  message.writeUInt32BE(Bun.hash.crc32(message.subarray(0, -4)), message.length - 4);
  return message;
}

/** One of Anthropic's events, as InvokeModel wraps it. */
const chunk = (event: object): Buffer =>
  frame("chunk", { bytes: Buffer.from(JSON.stringify(event)).toString("base64") });

/** Plays all three clouds and Google's token endpoint. */
let server: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      if (pathname === "/token") return Response.json({ access_token: "ya29", expires_in: 3_600 });
      seen.push({
        path: pathname + search,
        headers: request.headers,
        body: (await request.json()) as Record<string, unknown>,
      });
      if (pathname.startsWith("/model/")) {
        const frames = pathname.endsWith("/converse-stream")
          ? converseEvents.map(([type, payload]) => frame(type, payload))
          : claudeEvents.map(chunk);
        return new Response(Buffer.concat(frames), {
          headers: { "content-type": "application/vnd.amazon.eventstream" },
        });
      }
      return sse(pathname.includes("RawPredict") ? claudeEvents : [geminiChunk]);
    },
  });
});
afterAll(async () => {
  client.close();
  await server.stop(true);
});

const request: CanonicalRequest = {
  dialect: "openai-chat",
  model: "m",
  stream: true,
  maxOutputTokens: 64,
  messages: [{ role: "user", parts: [{ type: "text", text: "Hi" }] }],
};

/**
 * Asks a provider for a stream, as its definition says, with its address swapped for the server's.
 */
async function ask(
  definition: ProviderDefinition,
  {
    dialect,
    model,
    environment,
  }: { dialect: UpstreamDialect; model: string; environment: Environment },
): Promise<CanonicalResponse> {
  const { deviations = {} } = definition;
  const stream = true;
  const { body } = dialect.encodeRequest(request, {
    upstreamModel: model,
    stream,
    providerId: definition.id,
    deviations,
  });
  const fitted = fitToEndpoint(
    { text: JSON.stringify(body), headers: {} },
    { dialect: dialect.id, deviations },
  );
  const path = endpointPath(dialect.id, { upstreamModel: model, stream, deviations });
  const url = `http://127.0.0.1:${server.port}${path}`;
  const credential = definition.signing?.(environment);
  if (credential === undefined) throw new Error("no credential");
  const signer = createSigner(credential, { clock: systemClock, post: postFormThrough(client) });
  const headers = { "content-type": "application/json", ...fitted.headers };
  const proof = await signer.headersFor({ method: "POST", url, headers, body: fitted.text });
  const response = await client.send({
    target: upstreamTarget(url, headers),
    headers: proof,
    body: fitted.text,
    connectTimeoutMs: 1_000,
    timeouts: { firstTokenMs: 5_000, idleMs: 5_000, totalMs: 5_000 },
    abortScope: new AbortScope(undefined, { aborts: false }),
  });
  const bytes =
    dialect.binaryStreams === true
      ? await openEventStream("named")
      : deviations.eventStreamFrames === true && dialect.id === "anthropic-messages"
        ? await openEventStream("messages-error")
        : new SseDecoder();
  const decoder = dialect.createStreamDecoder({ providerId: definition.id });
  const assembler = new ResponseAssembler();
  for (let piece = await response.next(); piece !== undefined; piece = await response.next()) {
    for (const event of bytes.push(piece))
      for (const part of decoder.decode(event)) assembler.add(part);
  }
  for (const event of bytes.end()) for (const part of decoder.decode(event)) assembler.add(part);
  for (const part of decoder.end()) assembler.add(part);
  expect(assembler.error).toBeUndefined();
  return assembler.response();
}

const serviceAccount = (): Environment => ({
  GOOGLE_VERTEX_PROJECT: "p",
  GOOGLE_SERVICE_ACCOUNT_KEY: JSON.stringify({
    type: "service_account",
    client_email: "svc@p",
    private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
    token_uri: `http://127.0.0.1:${server.port}/token`,
  }),
});

const answered = {
  id: "msg_1",
  choices: [{ parts: [{ type: "text", text: "Łódź" }], finish: { reason: "stop" } }],
  usage: { usage: { inputTokens: 3, outputTokens: 4 } },
};

describe("a stream from", () => {
  test("Claude on Bedrock is signed and decoded from event-stream frames", async () => {
    const environment = {
      AWS_ACCESS_KEY_ID: "AK",
      AWS_SECRET_ACCESS_KEY: "s",
      AWS_SESSION_TOKEN: "t",
      AWS_REGION: "eu-west-1",
    };
    expect(
      await ask(amazonBedrock, {
        dialect: anthropicMessages,
        model: "eu.anthropic.claude-v1:0",
        environment,
      }),
    ).toMatchObject(answered);
    const { path, headers, body } = seen.at(-1) ?? {};
    expect(path).toBe("/model/eu.anthropic.claude-v1%3A0/invoke-with-response-stream");
    expect(body).toMatchObject({ anthropic_version: "bedrock-2023-05-31", max_tokens: 64 });
    expect(body).not.toHaveProperty("model");
    expect(body).not.toHaveProperty("stream");
    const authorization = headers?.get("authorization");
    expect(authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AK\/\d{8}\/eu-west-1\/bedrock\/aws4_request, /,
    );
    expect(authorization).toContain(
      "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=",
    );
    expect(headers?.get("x-amz-security-token")).toBe("t");
    expect(headers?.has("anthropic-version")).toBe(false);
  });

  test("Nova on Bedrock uses Converse", async () => {
    expect(
      await ask(amazonBedrock, {
        dialect: amazonConverse,
        model: "us.amazon.nova-2-lite-v1:0",
        environment: { AWS_ACCESS_KEY_ID: "AK", AWS_SECRET_ACCESS_KEY: "s" },
      }),
    ).toMatchObject({ ...answered, id: "" });
    const { path, headers, body } = seen.at(-1) ?? {};
    expect(path).toBe("/model/us.amazon.nova-2-lite-v1%3A0/converse-stream");
    expect(body).toEqual({
      messages: [{ role: "user", content: [{ text: "Hi" }] }],
      inferenceConfig: { maxTokens: 64 },
    });
    expect(headers?.get("authorization")).toMatch(/^AWS4-HMAC-SHA256 Credential=AK\//);
  });

  test("Claude on Vertex AI uses a token of the service account", async () => {
    expect(
      await ask(googleVertexAnthropic, {
        dialect: anthropicMessages,
        model: "claude-5",
        environment: serviceAccount(),
      }),
    ).toMatchObject(answered);
    const { path, headers, body } = seen.at(-1) ?? {};
    expect(path).toBe("/claude-5:streamRawPredict");
    expect(body).toMatchObject({ anthropic_version: "vertex-2023-10-16", stream: true });
    expect(body).not.toHaveProperty("model");
    expect(headers?.get("authorization")).toBe("Bearer ya29");
  });

  test("Gemini on Vertex AI uses a token of the service account", async () => {
    expect(
      await ask(googleVertex, {
        dialect: googleGenerate,
        model: "gemini-3.5-flash",
        environment: serviceAccount(),
      }),
    ).toMatchObject(answered);
    const { path, headers, body } = seen.at(-1) ?? {};
    expect(path).toBe("/models/gemini-3.5-flash:streamGenerateContent?alt=sse");
    expect(body).toEqual({
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      generationConfig: { maxOutputTokens: 64 },
    });
    expect(headers?.get("authorization")).toBe("Bearer ya29");
  });
});
