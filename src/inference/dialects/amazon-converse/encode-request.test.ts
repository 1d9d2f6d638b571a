import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chatRequest } from "../../../../test/support/canonical-arbitraries.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ImagePart, Message, UserPart } from "../../canonical/message.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { EncodeRequestOptions } from "../dialect.ts";
import { asObject } from "../shared/wire-fields.ts";
import { encodeRequest } from "./encode-request.ts";

const nova = "us.amazon.nova-pro-v1:0";
const claude = "anthropic.claude-haiku-4-5-v1:0";
const adaptiveClaude = "anthropic.claude-opus-4-8-v1:0";

const encode = (
  request: Partial<CanonicalRequest>,
  { upstreamModel = nova, ...options }: Partial<EncodeRequestOptions> = {},
) =>
  encodeRequest(
    {
      dialect: "openai-chat",
      model: "m",
      stream: false,
      messages: [{ role: "user", parts: [{ type: "text", text: "Hi" }] }],
      ...request,
    },
    { upstreamModel, stream: false, providerId: "amazon-bedrock", ...options },
  );

const user = (...parts: UserPart[]): Partial<CanonicalRequest> => ({
  messages: [{ role: "user", parts }],
});

const contentOf = (request: Partial<CanonicalRequest>): unknown => {
  const [first] = encode(request).body.messages as { content: unknown }[];
  return first?.content;
};

describe("images and documents", () => {
  test("encodes images with the format of their bytes", () => {
    const image = (mediaType: string, data: string): UserPart => ({
      type: "image",
      source: { type: "base64", mediaType, data },
    });
    expect(
      contentOf(user(image("image/png", "/9j/AA"), image("image/jpg", "AA"), image("", "R0lGOD"))),
    ).toEqual([
      { image: { format: "jpeg", source: { bytes: "/9j/AA" } } },
      { image: { format: "jpeg", source: { bytes: "AA" } } },
      { image: { format: "gif", source: { bytes: "R0lGOD" } } },
    ]);
  });

  test("encodes S3 URLs", () => {
    const url = "s3://bucket/cat.png";
    expect(contentOf(user({ type: "image", source: { type: "url", url } }))).toEqual([
      { image: { format: "png", source: { s3Location: { uri: url } } } },
    ]);
  });

  test("encodes documents with valid names and an accompanying text", () => {
    const document = (title: string): UserPart => ({
      type: "document",
      source: { type: "base64", mediaType: "application/pdf", data: "JVBE" },
      title,
    });
    expect(
      contentOf(
        user(document("Plan_B  (final).pdf"), document("Plan B (final).pdf"), document("")),
      ),
    ).toEqual([
      { document: { format: "pdf", name: "Plan B (final)", source: { bytes: "JVBE" } } },
      { document: { format: "pdf", name: "Plan B (final) 2", source: { bytes: "JVBE" } } },
      { document: { format: "pdf", name: "Document", source: { bytes: "JVBE" } } },
      { text: "(See the attached document.)" },
    ]);
  });

  test("encodes text documents, nested parts and audio", () => {
    expect(
      contentOf(
        user(
          { type: "document", source: { type: "text", text: "Hi" }, citations: true, context: "c" },
          {
            type: "document",
            title: "Found",
            source: { type: "parts", parts: [{ type: "text", text: "one" }] },
          },
          { type: "audio", data: "UklG", format: "wav" },
        ),
      ),
    ).toEqual([
      {
        document: {
          format: "txt",
          name: "Document",
          source: { bytes: "SGk=" },
          context: "c",
          citations: { enabled: true },
        },
      },
      { text: "Found" },
      { text: "one" },
      { audio: { format: "wav", source: { bytes: "UklG" } } },
    ]);
  });

  test.each<[what: string, part: UserPart]>([
    ["a URL", { type: "image", source: { type: "url", url: "https://example.com/a.png" } }],
    ["an upload", { type: "document", source: { type: "file", fileId: "file-1" } }],
    [
      "an image type",
      { type: "image", source: { type: "base64", mediaType: "image/tiff", data: "SUkq" } },
    ],
    [
      "a ZIP file",
      { type: "document", source: { type: "base64", mediaType: "application/zip", data: "UEs" } },
    ],
    ["a block", { type: "opaque", dialect: "openai-chat", value: { type: "video" } }],
  ])("refuses %s that the provider cannot read", (_what, part) => {
    expect(() => encode(user(part))).toThrow(
      expect.objectContaining({ code: "unsupported_content", param: "messages[0].content[0]" }),
    );
  });
});

describe("reasoning in the format of the model's vendor", () => {
  const rows: [
    model: string,
    request: Partial<CanonicalRequest>,
    body: JsonObject,
    losses: string[],
  ][] = [
    [
      claude,
      { reasoning: { effort: "low" }, maxOutputTokens: 1_100 },
      {
        inferenceConfig: { maxTokens: 1_100 },
        additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 1_024 } },
      },
      [],
    ],
    [
      claude,
      { reasoning: { effort: "low" }, maxOutputTokens: 100 },
      { inferenceConfig: { maxTokens: 100 } },
      ["reasoning"],
    ],
    [
      claude,
      { reasoning: { enabled: false }, sampling: { topK: 5 } },
      {
        inferenceConfig: { maxTokens: 4_096 },
        additionalModelRequestFields: { thinking: { type: "disabled" }, top_k: 5 },
      },
      [],
    ],
    [
      adaptiveClaude,
      { reasoning: { effort: "high" }, sampling: { temperature: 0.5, topK: 5 } },
      {
        inferenceConfig: { maxTokens: 4_096 },
        additionalModelRequestFields: { thinking: { type: "adaptive" } },
        outputConfig: { effort: "high" },
      },
      ["temperature", "top_k"],
    ],
    [
      "us.amazon.nova-2-lite-v1:0",
      { reasoning: { effort: "max" }, sampling: { temperature: 0.5 } },
      {
        additionalModelRequestFields: {
          reasoningConfig: { type: "enabled", maxReasoningEffort: "high" },
        },
      },
      ["temperature"],
    ],
    [
      "us.amazon.nova-2-lite-v1:0",
      { reasoning: { effort: "high" }, maxOutputTokens: 64, sampling: { topK: 5 } },
      {
        inferenceConfig: { maxTokens: 64 },
        additionalModelRequestFields: {
          reasoningConfig: { type: "enabled", maxReasoningEffort: "medium" },
          inferenceConfig: { topK: 5 },
        },
      },
      ["reasoning.effort"],
    ],
    [
      "openai.gpt-oss-120b-1:0",
      { reasoning: { effort: "xhigh" } },
      { additionalModelRequestFields: { reasoning_effort: "high" } },
      [],
    ],
    [nova, { reasoning: { effort: "low" } }, {}, ["reasoning"]],
    [nova, { reasoning: { effort: "none" } }, {}, []],
  ];
  test.each(rows)("%s %j", (upstreamModel, request, body, losses) => {
    const encoded = encode(request, { upstreamModel });
    const { messages: _messages, ...rest } = encoded.body;
    expect(rest).toEqual(body);
    expect(encoded.losses.map(({ field }) => field)).toEqual(losses);
  });

  test("omits reasoning of another provider", () => {
    const { body, losses } = encode({
      messages: [
        { role: "user", parts: [{ type: "text", text: "Hi" }] },
        {
          role: "assistant",
          parts: [
            {
              type: "reasoning",
              text: "hm",
              signature: "s",
              provenance: { providerId: "anthropic" },
            },
            { type: "text", text: "Yes " },
          ],
        },
      ],
    });
    expect(body.messages).toEqual([
      { role: "user", content: [{ text: "Hi" }] },
      { role: "assistant", content: [{ text: "Yes" }] },
    ]);
    expect(losses.map(({ field }) => field)).toEqual(["messages[1].content[0]"]);
  });
});

describe("tools", () => {
  const tool = { type: "function", name: "f", strict: true } as const;

  test("encodes a strict tool for a model that supports it, with its cache point", () => {
    const { body } = encode(
      { tools: [{ ...tool, cache: { ttl: "1h" } }], toolChoice: { type: "required" } },
      { upstreamModel: claude },
    );
    expect(body.toolConfig).toEqual({
      tools: [
        {
          toolSpec: {
            name: "f",
            inputSchema: {
              json: { type: "object", properties: {}, additionalProperties: false },
            },
            strict: true,
          },
        },
        { cachePoint: { type: "default", ttl: "1h" } },
      ],
      toolChoice: { any: {} },
    });
  });

  test("omits tools if tool_choice is none", () => {
    expect(encode({ tools: [tool], toolChoice: { type: "none" } }).body).not.toHaveProperty(
      "toolConfig",
    );
  });

  test("marks for Nova four places outside of tools and results, for five minutes", () => {
    const cache = { field: "cache_control", ttl: "1h" } as const;
    const said = (text: string) => ({ type: "text", text, cache }) as const;
    const { body, losses } = encode({
      tools: [{ ...tool, cache }],
      messages: [
        { role: "system", parts: [said("Be brief.")] },
        { role: "user", parts: ["a", "b", "c"].map(said) },
        {
          role: "assistant",
          parts: [{ type: "tool-call", kind: "function", id: "a", name: "f", arguments: "{}" }],
        },
        { role: "tool", toolCallId: "a", parts: [{ type: "text", text: "ok" }], cache },
        { role: "user", parts: [said("And?")] },
      ],
    });
    const written = JSON.stringify(body);
    expect(written.match(/"cachePoint":\{"type":"default"\}/g)).toHaveLength(4);
    expect(written).not.toContain('{"text":"ok"}]}},{"cachePoint"');
    expect(JSON.stringify([body.system, body.toolConfig])).not.toContain("cachePoint");
    expect(losses.map(({ field }) => field)).toContain("cache_control");
  });

  test.each([
    ["claude-opus-4-8", ["1h", "1h", "1h", undefined]],
    ["claude-sonnet-4-20250514", [undefined, undefined, undefined, undefined]],
    ["claude-opus-4-1-20250805", [undefined, undefined, undefined, undefined]],
  ])("marks four places for %s, none for longer than one before it", (name, lifetimes) => {
    const marked = (ttl?: "1h") => ({ field: "cache_control", ...(ttl && { ttl }) }) as const;
    const said = (text: string, ttl?: "1h") =>
      ({ type: "text", text, cache: marked(ttl) }) as const;
    const { body, losses } = encode(
      {
        tools: [{ ...tool, cache: marked("1h") }],
        messages: [
          { role: "system", parts: [said("Be brief.", "1h")] },
          {
            role: "assistant",
            parts: [{ type: "tool-call", kind: "function", id: "a", name: "f", arguments: "{}" }],
          },
          { role: "tool", toolCallId: "a", parts: [said("ok", "1h")] },
          { role: "user", parts: [said("Go.", "1h"), said("And?")] },
        ],
      },
      { upstreamModel: `us.anthropic.${name}-v1:0` },
    );
    const points = JSON.stringify([body.system, body.messages]).match(/"cachePoint":\{[^}]*\}/g);
    expect(points?.map((point) => /"ttl":"(.*)"/.exec(point)?.[1])).toEqual(lifetimes);
    expect(JSON.stringify(body.toolConfig)).not.toContain("cachePoint");
    expect(losses.map(({ field }) => field)).toContain("cache_control");
  });

  test("marks nothing for models that cache no prompts", () => {
    const cache = { field: "cache_control" } as const;
    const request = user({ type: "text", text: "Hi", cache });
    for (const upstreamModel of ["nvidia.nemotron-super-3-120b", "qwen.qwen3-coder-480b-v1:0"])
      expect(encode(request, { upstreamModel }).body.messages).toEqual([
        { role: "user", content: [{ text: "Hi" }] },
      ]);
    const arn = "arn:aws:bedrock:us-east-1:1:application-inference-profile/a";
    expect(JSON.stringify(encode(request, { upstreamModel: arn }).body)).toContain("cachePoint");
  });

  test("keeps calls and results apart from texts for models that refuse them together", () => {
    const said = (text: string) => ({ type: "text", text }) as const;
    const call = { type: "tool-call", kind: "function", id: "a", name: "f" } as const;
    const { body } = encode(
      {
        messages: [
          { role: "user", parts: [said("Go.")] },
          { role: "assistant", parts: [said("Wait."), { ...call, arguments: "{}" }] },
          { role: "tool", toolCallId: "a", parts: [said("none")], isError: true },
          { role: "user", parts: [said("And?")] },
        ],
      },
      { upstreamModel: "us.meta.llama4-maverick-17b-instruct-v1:0" },
    );
    const result = { toolUseId: "a", content: [{ text: "Error:" }, { text: "none" }] };
    expect(body.messages).toEqual([
      { role: "user", content: [{ text: "Go." }] },
      { role: "assistant", content: [{ text: "Wait." }] },
      { role: "user", content: [{ text: "Continue." }] },
      { role: "assistant", content: [{ toolUse: { toolUseId: "a", name: "f", input: {} } }] },
      { role: "user", content: [{ toolResult: result }] },
      { role: "assistant", content: [{ text: "Done." }] },
      { role: "user", content: [{ text: "And?" }] },
    ]);
  });

  test("puts pictures of results behind them where the model takes none within", () => {
    const picture = (data: string): ImagePart => ({
      type: "image",
      source: { type: "base64", mediaType: "image/png", data },
    });
    const calls = ["a", "b"].map(
      (id) => ({ type: "tool-call", kind: "function", id, name: "f", arguments: "{}" }) as const,
    );
    const messages: Message[] = [
      { role: "user", parts: [{ type: "text", text: "Go." }] },
      { role: "assistant", parts: calls },
      { role: "tool", toolCallId: "a", parts: [{ type: "text", text: "Shot:" }, picture("AA")] },
      { role: "tool", toolCallId: "b", parts: [picture("AB")] },
      { role: "user", parts: [{ type: "text", text: "And?" }] },
    ];
    const sent = (upstreamModel: string) =>
      (encode({ messages, tools: [tool] }, { upstreamModel }).body.messages as object[])[2];
    const image = (bytes: string) => ({ image: { format: "png", source: { bytes } } });
    const result = (toolUseId: string, ...content: object[]) => ({
      toolResult: { toolUseId, content },
    });
    expect(sent("global.openai.gpt-6-astra")).toEqual({
      role: "user",
      content: [
        result("a", { text: "Shot:" }, { text: "[image 1 attached below]" }),
        result("b", { text: "[image 2 attached below]" }),
        { text: "[image 1, from the result of tool call a]" },
        image("AA"),
        { text: "[image 2, from the result of tool call b]" },
        image("AB"),
        { text: "And?" },
      ],
    });
    expect(sent(nova)).toEqual({
      role: "user",
      content: [
        result("a", { text: "Shot:" }, image("AA")),
        result("b", image("AB")),
        { text: "And?" },
      ],
    });
  });

  test("puts the results of one turn in one message, with the status of failed ones", () => {
    const { body } = encode(
      {
        messages: [
          {
            role: "assistant",
            parts: [
              { type: "tool-call", kind: "function", id: "a:1", name: "f", arguments: "{}" },
              { type: "tool-call", kind: "function", id: "b", name: "f", arguments: "not JSON" },
            ],
          },
          { role: "tool", toolCallId: "a:1", parts: [], isError: true, cache: {} },
          { role: "tool", toolCallId: "b", parts: [{ type: "text", text: "ok", cache: {} }] },
        ],
        tools: [tool],
      },
      { upstreamModel: claude },
    );
    expect(body.messages).toMatchObject([
      { role: "user", content: [{ text: "(The conversation begins.)" }] },
      {
        role: "assistant",
        content: [
          { toolUse: { name: "f", input: {} } },
          { toolUse: { toolUseId: "b", name: "f", input: { _raw: "not JSON" } } },
        ],
      },
      {
        role: "user",
        content: [
          { toolResult: { content: [{ text: "(no output)" }], status: "error" } },
          { cachePoint: { type: "default" } },
          { toolResult: { toolUseId: "b", content: [{ text: "ok" }] } },
          { cachePoint: { type: "default" } },
        ],
      },
    ]);
  });
});

describe("unsupported by Converse", () => {
  test.each<[param: string, request: Partial<CanonicalRequest>]>([
    ["n", { choiceCount: 2 }],
    ["logprobs", { logProbabilities: {} }],
    ["modalities", { modalities: ["audio"] }],
    ["messages", { messages: [{ role: "user", parts: [{ type: "text", text: " " }] }] }],
  ])("%s is refused", (param, request) => {
    expect(() => encode(request)).toThrow(
      expect.objectContaining({ code: "unsupported_content", param }),
    );
  });

  test("JSON without a schema becomes an instruction and a loss", () => {
    const { body, losses } = encode({ output: { type: "json" } });
    expect(body.system).toMatchObject([{ text: expect.stringContaining("one JSON object") }]);
    expect(losses.map(({ field }) => field)).toEqual(["response_format"]);
  });

  test("a schema is enforced for models that support it, and described to others", () => {
    const schema = { type: "object", properties: { a: { type: "string" } } };
    const output = { type: "json-schema", schema, name: "answer" } as const;
    const bound = encode({ output }, { upstreamModel: "qwen.qwen3-32b-v1:0" });
    expect(bound.body.outputConfig).toEqual({
      textFormat: {
        type: "json_schema",
        structure: {
          jsonSchema: {
            schema: JSON.stringify({ ...schema, additionalProperties: false }),
            name: "answer",
          },
        },
      },
    });
    expect(bound.losses).toEqual([]);
    const described = encode({ output });
    expect(described.body).not.toHaveProperty("outputConfig");
    expect(described.body.system).toMatchObject([
      { text: expect.stringContaining('"properties":{"a"') },
    ]);
    expect(described.losses.map(({ field }) => field)).toEqual(["response_format"]);
  });

  test("unsupported sampling parameters and service tiers are losses", () => {
    const { body, losses } = encode({
      sampling: { seed: 1, temperature: 1.5, topK: 3 },
      serviceTier: "flex",
      verbosity: "low",
    });
    expect(body).toMatchObject({
      inferenceConfig: { temperature: 1 },
      additionalModelRequestFields: { inferenceConfig: { topK: 3 } },
      serviceTier: { type: "flex" },
    });
    expect(losses.map(({ field }) => field)).toEqual(["seed", "temperature", "verbosity"]);
  });
});

test("any conversation alternates, starts with the user and has no empty block", () => {
  fc.assert(
    fc.property(chatRequest, (request) => {
      let body: ReturnType<typeof encode>["body"];
      try {
        body = encode(request).body;
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayError);
        return;
      }
      const messages = body.messages as { role: string; content: object[] }[];
      messages.forEach(({ role, content }, index) => {
        expect(role).toBe(index % 2 === 0 ? "user" : "assistant");
        expect(content.length).toBeGreaterThan(0);
        for (const block of content) {
          const text = asObject(block)?.text;
          if (typeof text === "string" && index < messages.length - 1)
            expect(text.trim()).not.toBe("");
        }
      });
    }),
    { numRuns: 300 },
  );
});
