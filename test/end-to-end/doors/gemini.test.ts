import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { testLlmKey } from "../../support/gateway.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { json, stream } from "../../support/upstream/steps.ts";
import { wireEvents } from "../../support/upstream/upstream-wire.ts";
import { fieldsOf, listOf, type Fields } from "../matrix/support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "../matrix/support/matrix-scene.ts";
import { upstreams } from "../matrix/support/pairs.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

type Upstream = (typeof upstreams)[number];

const said = { contents: [{ role: "user", parts: [{ text: "Hi" }] }] };

/** Sends a request in Google's dialect to the provider of one upstream dialect. */
function ask(
  upstream: Upstream,
  method: string,
  { body = said, headers = {} }: { body?: Fields; headers?: Record<string, string> } = {},
): Promise<Response> {
  const only = [providerId(upstream)];
  return scene.gateway.post(
    `/models/acme/large:${method}`,
    { ...body, provider: { order: only, only } },
    { headers },
  );
}

const sentTo = (upstream: Upstream): Fields =>
  fieldsOf(scene.upstreams[upstream].requests.at(-1)?.json());

const chunksOf = (text: string): Fields[] =>
  text
    .split("\n\n")
    .filter((frame) => frame !== "")
    .map((frame) => {
      expect(frame).toStartWith("data: {");
      return fieldsOf(JSON.parse(frame.slice("data: ".length)));
    });

const partsOf = (answer: Fields): Fields[] =>
  listOf(fieldsOf(listOf(answer.candidates)[0]?.content).parts);

describe.each(upstreams)("before an upstream that speaks %s", (upstream) => {
  test("a whole answer has its text, its end, its usage and its charge", async () => {
    scene.upstreams[upstream].script(json(wireOf(upstream).whole));
    const response = await ask(upstream, "generateContent");
    const answer = fieldsOf(await response.json());
    expect(response.status).toBe(200);
    expect(answer).toMatchObject({
      candidates: [{ content: { role: "model" }, finishReason: "STOP", index: 0 }],
      modelVersion: "acme/large",
      responseId: response.headers.get("x-service-trace-id"),
    });
    expect(partsOf(answer)[0]?.text).not.toBe("");
    const usage = fieldsOf(answer.usageMetadata);
    expect(usage.cost).toBeGreaterThan(0);
    expect(usage.totalTokenCount).toBeGreaterThan(0);
  });

  test("a stream ends with the reason, the usage and the metadata, as events and as an array", async () => {
    for (const form of ["?alt=sse", ""]) {
      scene.upstreams[upstream].script(stream(wireEvents(wireOf(upstream))));
      const response = await ask(upstream, `streamGenerateContent${form}`);
      const text = await response.text();
      const chunks = form === "" ? listOf(JSON.parse(text)) : chunksOf(text);
      expect(response.headers.get("content-type")).toStartWith(
        form === "" ? "application/json" : "text/event-stream",
      );
      const ends = chunks.filter((chunk) => listOf(chunk.candidates)[0]?.finishReason);
      expect(ends).toHaveLength(1);
      expect(chunks.at(-1)).toMatchObject({
        candidates: [{ finishReason: "STOP" }],
        usageMetadata: { cost: expect.any(Number) },
        service_metadata: { model: "acme/large" },
      });
    }
  });

  test("errors have Google's form", async () => {
    scene.upstreams[upstream].script(
      json({ error: { message: "Too odd.", code: 400 } }, { status: 400 }),
    );
    const response = await ask(upstream, "generateContent");
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: {
        code: 400,
        status: "INVALID_ARGUMENT",
        details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo" }],
      },
    });
  });
});

test("a request reaches Google's own models in its own bytes, without what is the gateway's", async () => {
  scene.upstreams["google-generate"].script(json(wireOf("google-generate").whole));
  const body = {
    contents: [{ parts: [{ text: "Hi" }], role: "user" }],
    safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" }],
    tools: [{ googleSearch: {} }],
    session_id: "one",
  };
  await ask("google-generate", "generateContent", { body });
  const { session_id: _, ...own } = body;
  expect(sentTo("google-generate")).toEqual(own);
});

test("upper-case types of either schema field and both spellings reach other vendors as JSON Schema", async () => {
  const offered = {
    function_declarations: [
      { name: "look", parameters: { type: "OBJECT", properties: { q: { type: "STRING" } } } },
    ],
    googleSearch: {},
  };
  for (const field of ["responseSchema", "response_json_schema"]) {
    scene.upstreams["openai-chat"].script(json(wireOf("openai-chat").whole));
    const response = await ask("openai-chat", "generateContent", {
      body: {
        ...said,
        system_instruction: { parts: [{ text: "Be brief." }] },
        generation_config: {
          response_mime_type: "application/json",
          [field]: {
            type: "OBJECT",
            properties: { a: { type: "STRING", nullable: true }, b: { type: "INTEGER" } },
            propertyOrdering: ["a", "b"],
          },
        },
        tools: field === "responseSchema" ? offered : [offered],
      },
    });
    expect(response.headers.get("x-service-translation-loss")).toContain("tools[1]");
    expect(sentTo("openai-chat")).toMatchObject({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hi" },
      ],
      response_format: {
        json_schema: {
          schema: {
            type: "object",
            properties: { a: { type: ["string", "null"] }, b: { type: "integer" } },
          },
        },
      },
      tools: [
        {
          function: {
            name: "look",
            parameters: { type: "object", properties: { q: { type: "string" } } },
          },
        },
      ],
    });
  }
});

test("one of a list of texts is picked, bare as at Google, whole and streamed", async () => {
  const generationConfig = {
    responseMimeType: "text/x.enum",
    responseSchema: { type: "STRING", enum: ["red", 'dark "blue"'] },
  };
  const pieces = ['{"va', 'lue":"dark \\"', 'blue\\""}'];
  scene.upstreams["openai-chat"].script((request) => chatAnswer(request, { text: pieces }));
  const body = { ...said, generationConfig };
  const whole = fieldsOf(await (await ask("openai-chat", "generateContent", { body })).json());
  expect(partsOf(whole)).toEqual([{ text: 'dark "blue"' }]);
  // OpenAI takes a schema of an object alone.
  expect(sentTo("openai-chat")).toMatchObject({
    response_format: {
      json_schema: {
        schema: {
          type: "object",
          properties: { value: { type: "string", enum: ["red", 'dark "blue"'] } },
          required: ["value"],
        },
      },
    },
  });
  const streamed = await ask("openai-chat", "streamGenerateContent?alt=sse", { body });
  const parts = chunksOf(await streamed.text()).flatMap(partsOf);
  expect(parts.map(({ text }) => text).join("")).toBe('dark "blue"');
});

test("properties of a schema keep their names, whatever spelling Google's members have", async () => {
  const schema = { type: "object", properties: { mime_type: { type: "string" } } };
  for (const field of ["response_json_schema", "_responseJsonSchema", "responseSchema"]) {
    scene.upstreams["openai-chat"].script(json(wireOf("openai-chat").whole));
    const config = { response_mime_type: "application/json", [field]: schema };
    await ask("openai-chat", "generateContent", { body: { ...said, generation_config: config } });
    expect(sentTo("openai-chat")).toMatchObject({ response_format: { json_schema: { schema } } });
  }
});

test("answers of another vendor have tokens by modality, and the mean of log probabilities", async () => {
  scene.upstreams["openai-chat"].script(
    json({
      id: "c",
      object: "chat.completion",
      created: 1_700_000_000,
      model: "m",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "Hi you" },
          finish_reason: "stop",
          logprobs: {
            content: [
              { token: "Hi", logprob: -0.5, top_logprobs: [] },
              { token: " you", logprob: -1.5, top_logprobs: [] },
            ],
          },
        },
      ],
      usage: {
        ...{ prompt_tokens: 100, completion_tokens: 40, total_tokens: 140 },
        prompt_tokens_details: { cached_tokens: 60, audio_tokens: 7 },
        completion_tokens_details: { reasoning_tokens: 15 },
      },
    }),
  );
  const generationConfig = { responseLogprobs: true, logprobs: 1 };
  const body = { ...said, generationConfig };
  const answer = fieldsOf(await (await ask("openai-chat", "generateContent", { body })).json());
  expect(answer).toMatchObject({
    candidates: [{ avgLogprobs: -1, logprobsResult: { chosenCandidates: [{ token: "Hi" }, {}] } }],
    usageMetadata: {
      ...{ promptTokenCount: 100, cachedContentTokenCount: 60, candidatesTokenCount: 25 },
      ...{ thoughtsTokenCount: 15, totalTokenCount: 140 },
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: 93 },
        { modality: "AUDIO", tokenCount: 7 },
      ],
    },
  });
  expect(answer.usageMetadata).not.toHaveProperty("candidatesTokensDetails");
});

test("what another vendor cannot be sent is named as its client wrote it", async () => {
  const video = { fileData: { mimeType: "video/mp4", fileUri: "gs://bucket/a.mp4" } };
  for (const [fields, field, word] of [
    [{ contents: [{ parts: [video] }] }, "contents[0].parts[0]", "fileData"],
    [
      { ...said, generationConfig: { candidateCount: 2 } },
      "generationConfig.candidateCount",
      "several answers",
    ],
  ] as const) {
    const response = await ask("anthropic-messages", "generateContent", { body: fields });
    const { details, message } = fieldsOf(fieldsOf(await response.json()).error);
    expect(response.status).toBe(400);
    expect(message).toContain(word);
    expect(listOf(details)[1]).toMatchObject({ fieldViolations: [{ field }] });
  }
  const asked = { ...said, generationConfig: { mediaResolution: "MEDIA_RESOLUTION_LOW" } };
  anthropicAnswers();
  const response = await ask("anthropic-messages", "generateContent", { body: asked });
  expect(response.headers.get("x-service-translation-loss")).toBe(
    "generationConfig.mediaResolution",
  );
});

const anthropicAnswers = (): void =>
  scene.upstreams["anthropic-messages"].script(json(wireOf("anthropic-messages").whole));

test("reasoning that Claude sealed comes back to it on the call, though the client leaves thoughts out", async () => {
  const claude = scene.upstreams["anthropic-messages"];
  claude.script(
    json({
      ...fieldsOf(wireOf("anthropic-messages").whole),
      content: [
        { type: "thinking", thinking: "Look first.", signature: "c2VhbA==" },
        { type: "tool_use", id: "toolu_1", name: "look", input: { q: "a" } },
      ],
      stop_reason: "tool_use",
    }),
  );
  const tools = [{ functionDeclarations: [{ name: "look", parameters: { type: "OBJECT" } }] }];
  const first = await ask("anthropic-messages", "generateContent", { body: { ...said, tools } });
  const parts = partsOf(fieldsOf(await first.json()));
  expect(parts).toEqual([
    {
      functionCall: { id: "toolu_1", name: "look", args: { q: "a" } },
      thoughtSignature: expect.any(String),
    },
  ]);
  const answered = {
    tools,
    contents: [
      ...said.contents,
      { role: "model", parts },
      {
        role: "user",
        parts: [{ functionResponse: { name: "look", response: { output: "found" } } }],
      },
    ],
  };
  claude.script(json(wireOf("anthropic-messages").whole));
  await ask("anthropic-messages", "generateContent", { body: answered });
  expect(listOf(sentTo("anthropic-messages").messages).slice(1)).toMatchObject([
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Look first.", signature: "c2VhbA==" },
        { type: "tool_use", id: "toolu_1", name: "look", input: { q: "a" } },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1" }] },
  ]);
  scene.upstreams["google-generate"].script(json(wireOf("google-generate").whole));
  await ask("google-generate", "generateContent", { body: answered });
  expect(JSON.stringify(sentTo("google-generate"))).not.toContain("Z3cxO");
});

test("Google's own signature, and its text for a missing one, reach no other vendor", async () => {
  scene.upstreams["anthropic-messages"].script(json(wireOf("anthropic-messages").whole));
  const call = { functionCall: { name: "look", args: {} } };
  await ask("anthropic-messages", "generateContent", {
    body: {
      contents: [
        ...said.contents,
        { role: "model", parts: [{ ...call, thoughtSignature: "CioBVKhc7nQ" }] },
        { role: "user", parts: [{ functionResponse: { name: "look", response: {} } }] },
        {
          role: "model",
          parts: [{ ...call, thoughtSignature: "skip_thought_signature_validator" }],
        },
        { role: "user", parts: [{ functionResponse: { name: "look", response: {} } }] },
      ],
    },
  });
  const sent = JSON.stringify(sentTo("anthropic-messages"));
  expect(sent).not.toContain("CioBVKhc7nQ");
  expect(sent).not.toContain("skip_thought");
  expect(sent).toContain('"tool_use_id":"call_2"');
});

describe("the door", () => {
  const { host } = { host: () => scene.gateway.baseUrl.replace(/\/(?:api\/)?v1$/, "") };
  const withKey = (path: string, init: RequestInit = {}) => fetch(host() + path, init);

  test.each([
    "/v1beta/models/acme/large",
    "/v1alpha/models/acme%2Flarge",
    "/v1/models/acme/large",
    "/api/v1/models/acme%2Flarge",
    "/gemini/v1beta/models/models/acme/large",
    "/gemini/v1/models/acme/large",
    // The AI SDK and LangChain's package for JavaScript leave out the collection.
    "/v1beta/acme/large",
    "/gemini/v1beta/acme/large",
  ])("opens at %s for each place of a key", async (path) => {
    for (const [query, headers] of [
      [`?key=${testLlmKey}`, {}],
      ["", { "x-goog-api-key": testLlmKey }],
      ["", { authorization: `Bearer ${testLlmKey}` }],
    ] as const) {
      const response = await withKey(`${path}:countTokens${query}`, {
        method: "POST",
        headers,
        body: JSON.stringify({ generateContentRequest: { model: "models/x", ...said } }),
      });
      expect([response.status, await response.json()]).toEqual([
        200,
        { totalTokens: expect.any(Number) },
      ]);
    }
    expect((await withKey(`${path}:countTokens`, { method: "POST", body: "{}" })).status).toBe(401);
  });

  test("lists and shows models in Google's form, at the shared path by headers", async () => {
    const entry = {
      name: "models/acme/large",
      inputTokenLimit: 131_072,
      outputTokenLimit: 8_192,
      supportedGenerationMethods: ["generateContent", "streamGenerateContent", "countTokens"],
    };
    const key = { headers: { "x-goog-api-key": testLlmKey } };
    for (const path of ["/v1beta/models", "/v1/models", "/gemini/v1/models"])
      expect(await (await withKey(`${path}?pageSize=1`, key)).json()).toMatchObject({
        models: [entry],
      });
    for (const path of ["/v1beta/models/acme/large", "/v1/models/acme/large"])
      expect(await (await withKey(path, key)).json()).toMatchObject(entry);
    for (const path of ["/v1beta/models/acme/none", "/v1/models/acme/none", "/v1/models/none"])
      expect(await (await withKey(path, key)).json()).toMatchObject({
        error: { code: 404, status: "NOT_FOUND" },
      });
    expect(await (await scene.gateway.get("/models")).json()).toHaveProperty("object", "list");
    for (const key of [testLlmKey, "sk-svc-v1-none"])
      expect(await (await withKey(`/v1/models/none?key=${key}`)).json()).toMatchObject({
        error: { status: key === testLlmKey ? "NOT_FOUND" : "UNAUTHENTICATED" },
      });
    for (const [key, words] of [
      ["sk-svc-v1-none", /disabled or expired\.$/],
      ["AIzaNone", /is not valid.* begin with sk-svc-/],
    ] as const)
      expect(await (await withKey(`/v1/models/none?key=${key}`)).json()).toMatchObject({
        error: { message: expect.stringMatching(words) },
      });
  });

  test("keeps a key of the query out of its logs, its errors and what it asks", async () => {
    const google = scene.upstreams["google-generate"];
    const provider = { only: [providerId("google-generate")] };
    const init = { method: "POST", body: JSON.stringify({ ...said, provider }) };
    const refused = "sk-svc-v1-refusedrefusedrefusedrefusedrefused00";
    google.script(json(wireOf("google-generate").whole));
    const texts: string[] = [];
    for (const [path, key] of [
      ["/v1beta/models/acme/large:generateContent", testLlmKey],
      ["/v1beta/models/acme/large:generateContent", refused],
      ["/v1beta/models/acme/none:generateContent", testLlmKey],
      ["/v1beta/cachedContents", testLlmKey],
      ["/v1/unknown", testLlmKey],
      ["/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent", testLlmKey],
    ] as const)
      texts.push(await (await withKey(`${path}?key=${key}`, init)).text());
    const asked = google.requests.at(-1);
    const told = [...texts, ...scene.gateway.logLines, asked?.path ?? "", asked?.body ?? ""];
    expect(told.filter((text) => text.includes(testLlmKey) || text.includes(refused))).toEqual([]);
    expect(asked?.path).toEndWith(":generateContent");
  });

  test("refuses what it does not have in Google's form", async () => {
    for (const path of ["/v1beta/cachedContents", "/v1beta/interactions", "/v1/cachedContents"]) {
      const response = await withKey(`${path}?key=${testLlmKey}`);
      expect([response.status, await response.json()]).toMatchObject([
        404,
        { error: { code: 404, status: "NOT_FOUND" } },
      ]);
    }
    const response = await ask("openai-chat", "generateContent", {
      body: { ...said, cachedContent: "cachedContents/another" },
    });
    expect(response.status).toBe(404);
  });
});
