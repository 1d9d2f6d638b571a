import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantPart, Message, ToolResultPart, UserPart } from "../../canonical/message.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { EncodedRequest } from "../dialect.ts";
import { encodeRequest } from "./encode-request.ts";

const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });

const plain: CanonicalRequest = {
  dialect: "openai-chat",
  model: "m",
  stream: false,
  messages: [user("a")],
};

const encode = (
  change: Partial<CanonicalRequest>,
  upstreamModel = "gemini-3-pro",
): EncodedRequest =>
  encodeRequest({ ...plain, ...change }, { upstreamModel, stream: false, providerId: "google" });

const contentsOf = (messages: Message[], upstreamModel?: string): unknown =>
  encode({ messages }, upstreamModel).body.contents;
const lossesOf = (change: Partial<CanonicalRequest>, upstreamModel?: string): string[] =>
  encode(change, upstreamModel).losses.map(({ field }) => field);

describe("the conversation", () => {
  test("has neither the model nor the stream flag in the body", () => {
    expect(
      encodeRequest(plain, { upstreamModel: "m", stream: true, providerId: "google" }).body,
    ).toEqual({
      contents: [{ role: "user", parts: [{ text: "a" }] }],
    });
  });

  test("sends lone instructions as the user", () => {
    expect(
      encode({ messages: [{ role: "system", parts: [{ type: "text", text: "Rhyme." }] }] }).body,
    ).toEqual({
      contents: [{ role: "user", parts: [{ text: "Rhyme." }] }],
    });
  });

  test("is refused without content", () => {
    expect(() => encode({ messages: [{ role: "user", parts: [] }] })).toThrow(
      expect.objectContaining({ code: "unsupported_content", param: "messages" }),
    );
  });

  test("omits the accounting line of Claude Code", () => {
    const parts = [
      { type: "text", text: "x-anthropic-billing-header: cc=1" },
      { type: "text", text: "Be brief." },
    ] as const;
    expect(
      encode({ messages: [{ role: "system", parts }, user("a")] }).body.systemInstruction,
    ).toEqual({ parts: [{ text: "Be brief." }] });
  });

  test("puts the results of one turn in one content, in order of the calls, before the user's text", () => {
    const call = (id: string): AssistantPart => ({
      type: "tool-call",
      kind: "function",
      id,
      name: `f_${id}`,
      arguments: "{}",
    });
    expect(
      contentsOf(
        [
          user("go"),
          { role: "assistant", parts: [call("a"), call("b"), call("c")] },
          { role: "tool", toolCallId: "b", parts: [{ type: "text", text: "B" }], isError: true },
          { role: "tool", toolCallId: "a", parts: [{ type: "text", text: "A" }] },
          user("and?"),
        ],
        "gemini-2.5-flash",
      ),
    ).toEqual([
      { role: "user", parts: [{ text: "go" }] },
      {
        role: "model",
        parts: ["f_a", "f_b", "f_c"].map((name) => ({ functionCall: { name, args: {} } })),
      },
      {
        role: "user",
        parts: [
          { functionResponse: { name: "f_a", response: { output: "A" } } },
          { functionResponse: { name: "f_b", response: { error: "B" } } },
          { functionResponse: { name: "f_c", response: { error: "(no result)" } } },
          { text: "and?" },
        ],
      },
    ]);
  });

  const png = { type: "base64", mediaType: "image/png", data: "AAAA" } as const;
  const gif = { ...png, mediaType: "image/gif" } as const;
  const pdf = { ...png, mediaType: "application/pdf" } as const;
  const inline = ({ mediaType: mimeType, data }: { mediaType: string; data: string }) => ({
    inlineData: { mimeType, data },
  });
  test.each<[string, UserPart[], object, object[], string[]]>([
    [
      "gemini-2.5-pro",
      [{ type: "image", source: png }],
      { output: "See:\n[image 1 attached below]" },
      [inline(png)],
      ["messages[2].content[1]"],
    ],
    [
      "gemini-3-pro",
      [
        { type: "image", source: png },
        { type: "document", source: pdf },
      ],
      { output: "See:\n[image 1]\n[document 2]", parts: [inline(png), inline(pdf)] },
      [],
      [],
    ],
    [
      "gemini-3-pro",
      [{ type: "image", source: gif }],
      { output: "See:\n[image 1 attached below]" },
      [inline(gif)],
      ["messages[2].content[1]"],
    ],
    [
      "gemini-3-pro",
      [{ type: "image", source: { type: "url", url: "https://x.test/a.png" } }],
      { output: "See:\n[image 1 attached below]" },
      [{ fileData: { mimeType: "image/png", fileUri: "https://x.test/a.png" } }],
      ["messages[2].content[1]"],
    ],
    [
      "gemini-2.5-pro",
      [{ type: "document", title: "T", source: { type: "text", text: "words" } }],
      { output: "See:\nT\nwords" },
      [],
      [],
    ],
  ])("%s takes media of a result where it can: %j", (model, media, sent, beside, lost) => {
    const call: AssistantPart = {
      type: "tool-call",
      kind: "function",
      id: "a",
      name: "f",
      arguments: "",
    };
    const { body, losses } = encode(
      {
        messages: [
          user("go"),
          { role: "assistant", parts: [call] },
          {
            role: "tool",
            toolCallId: "a",
            parts: [{ type: "text", text: "See:" }, ...(media as ToolResultPart[])],
          },
        ],
      },
      model,
    );
    const { output, ...more } = sent as { output: string };
    const response = { name: "f", response: { output }, ...more };
    const own = model === "gemini-3-pro" ? { id: "a", ...response } : response;
    expect((body.contents as JsonObject[])[2]).toEqual({
      role: "user",
      parts: [{ functionResponse: own }, ...(beside as JsonObject[])],
    });
    expect(losses.map(({ field }) => field)).toEqual(lost);
  });

  test("keeps arguments that are not an object", () => {
    const parts = ["", " ", "{", "[1]", '{"a":1}'].map(
      (text, index): AssistantPart => ({
        type: "tool-call",
        kind: "function",
        id: `c${index}`,
        name: "f",
        arguments: text,
      }),
    );
    const model = (
      contentsOf([user("a"), { role: "assistant", parts }], "gemini-2.5-pro") as {
        parts: JsonObject[];
      }[]
    )[1];
    expect(model?.parts.map((part) => (part.functionCall as JsonObject).args)).toEqual([
      {},
      {},
      { _raw: "{" },
      { _raw: "[1]" },
      { a: 1 },
    ]);
  });
});

describe("content", () => {
  const rows: [what: string, part: UserPart, expected: object][] = [
    [
      "an image URL",
      { type: "image", source: { type: "url", url: "https://a.example/b.WEBP?x=1" } },
      { fileData: { mimeType: "image/webp", fileUri: "https://a.example/b.WEBP?x=1" } },
    ],
    [
      "a URL without a type",
      { type: "image", source: { type: "url", url: "https://a.example/b" } },
      { fileData: { fileUri: "https://a.example/b" } },
    ],
    [
      "a file uploaded to Google",
      {
        type: "document",
        source: {
          type: "file",
          fileId: "https://generativelanguage.googleapis.com/v1beta/files/x",
        },
      },
      { fileData: { fileUri: "https://generativelanguage.googleapis.com/v1beta/files/x" } },
    ],
    [
      "a text document",
      { type: "document", source: { type: "text", text: "body" }, title: "t" },
      { text: "t\nbody" },
    ],
    [
      "sound",
      { type: "audio", data: "AAAA", format: "mp3" },
      { inlineData: { mimeType: "audio/mp3", data: "AAAA" } },
    ],
    [
      "a part of Gemini's own",
      { type: "opaque", dialect: "google-generate", value: { executableCode: {} } },
      { executableCode: {} },
    ],
  ];
  test.each(rows)("encodes %s", (_what, part, expected) => {
    expect(contentsOf([{ role: "user", parts: [part] }])).toEqual([
      { role: "user", parts: [expected] },
    ]);
  });

  const refused: [what: string, part: UserPart][] = [
    ["another provider's upload", { type: "image", source: { type: "file", fileId: "file-1" } }],
    [
      "a URL with another scheme",
      { type: "image", source: { type: "url", url: "ftp://a.example/b.png" } },
    ],
    [
      "a part of another dialect",
      { type: "opaque", dialect: "anthropic-messages", value: { type: "container_upload" } },
    ],
  ];
  test.each(refused)("refuses %s", (_what, part) => {
    expect(() =>
      encode({ messages: [{ role: "user", parts: [{ type: "text", text: "a" }, part] }] }),
    ).toThrow(
      expect.objectContaining({ code: "unsupported_content", param: "messages[0].content[1]" }),
    );
  });
});

describe("thought signatures", () => {
  const own = { providerId: "google" };
  const call: AssistantPart = {
    type: "tool-call",
    kind: "function",
    id: "c",
    name: "f",
    arguments: "{}",
  };
  const wireCall = { functionCall: { name: "f", args: {} } };
  const rows: [what: string, parts: AssistantPart[], expected: object[], losses: string[]][] = [
    [
      "stay on their call",
      [{ ...call, signature: "s", provenance: own }],
      [{ ...wireCall, thoughtSignature: "s" }],
      [],
    ],
    [
      "of another provider are omitted",
      [{ ...call, signature: "s", provenance: { providerId: "vertex" } }],
      [wireCall],
      ["messages[1].content[0].signature"],
    ],
    [
      "before a call are attached to it",
      [{ type: "reasoning", signature: "s", provenance: own }, call],
      [{ ...wireCall, thoughtSignature: "s" }],
      [],
    ],
    [
      "after text are attached to it",
      [
        { type: "text", text: "t" },
        { type: "reasoning", signature: "s", provenance: own },
      ],
      [{ text: "t", thoughtSignature: "s" }],
      [],
    ],
    [
      "are kept with their thought",
      [
        { type: "reasoning", text: "hm", signature: "s", provenance: own },
        { type: "text", text: "t" },
      ],
      [{ text: "hm", thought: true, thoughtSignature: "s" }, { text: "t" }],
      [],
    ],
    [
      "without a provider are omitted",
      [
        { type: "reasoning", text: "hm", signature: "s" },
        { type: "text", text: "t" },
      ],
      [{ text: "t" }],
      ["messages[1].content[0]"],
    ],
    [
      "are not invented for thoughts",
      [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "t" },
      ],
      [{ text: "t" }],
      ["messages[1].content[0]"],
    ],
  ];
  test.each(rows)("%s", (_what, parts, expected, losses) => {
    const encoded = encode(
      { messages: [user("a"), { role: "assistant", parts }] },
      "gemini-2.5-pro",
    );
    expect((encoded.body.contents as { parts: unknown }[])[1]?.parts).toEqual(expected);
    expect(encoded.losses.map(({ field }) => field)).toEqual(losses);
  });

  test("are replaced by a placeholder on the first call of a step, if Gemini 3 requires one", () => {
    const contents = contentsOf([
      user("a"),
      { role: "assistant", parts: [call, { ...call, id: "d" }] },
    ]) as { parts: unknown }[];
    expect(contents[1]?.parts).toEqual([
      {
        functionCall: { id: "c", name: "f", args: {} },
        thoughtSignature: "skip_thought_signature_validator",
      },
      { functionCall: { id: "d", name: "f", args: {} } },
    ]);
  });
});

describe("generationConfig", () => {
  test("has all sampling parameters of Gemini", () => {
    expect(
      encode(
        {
          sampling: {
            temperature: 1,
            topP: 0.5,
            topK: 40,
            frequencyPenalty: 0.1,
            presencePenalty: 0.2,
            seed: 7,
          },
          choiceCount: 2,
          stop: ["a", "", "b"],
          maxOutputTokens: 9,
          logProbabilities: { top: 3 },
          modalities: ["text", "image"],
          output: { type: "json" },
        },
        "gemini-2.0-flash",
      ).body.generationConfig,
    ).toEqual({
      temperature: 1,
      topP: 0.5,
      topK: 40,
      frequencyPenalty: 0.1,
      presencePenalty: 0.2,
      seed: 7,
      candidateCount: 2,
      stopSequences: ["a", "b"],
      maxOutputTokens: 9,
      responseLogprobs: true,
      logprobs: 3,
      responseMimeType: "application/json",
      responseModalities: ["TEXT", "IMAGE"],
    });
  });

  test("omits penalties that newer models refuse, and values without effect", () => {
    const { body, losses } = encode({
      sampling: { frequencyPenalty: 0.1, presencePenalty: 0, topK: 0, temperature: 0 },
    });
    expect(body.generationConfig).toEqual({ temperature: 0 });
    expect(losses.map(({ field }) => field)).toEqual(["frequency_penalty"]);
  });

  test("has a response format with tools from Gemini 3 on", () => {
    const both: Partial<CanonicalRequest> = {
      output: { type: "json" },
      tools: [{ type: "function", name: "f" }],
    };
    expect(encode(both).body.generationConfig).toEqual({ responseMimeType: "application/json" });
    expect(encode(both, "gemini-2.5-pro").body.generationConfig).toBeUndefined();
    expect(lossesOf(both, "gemini-2.5-pro")).toEqual(["response_format"]);
    expect(lossesOf({ output: { type: "json" } }, "gemini-2.5-pro")).toEqual([]);
  });

  const thinking: [
    model: string,
    reasoning: NonNullable<CanonicalRequest["reasoning"]>,
    config: object | undefined,
    losses: string[],
  ][] = [
    ["gemini-3-pro", { effort: "low" }, { thinkingLevel: "LOW", includeThoughts: true }, []],
    [
      "models/gemini-3.5-flash",
      { effort: "xhigh", exclude: true },
      { thinkingLevel: "HIGH", includeThoughts: false },
      [],
    ],
    [
      "gemini-3-flash",
      { effort: "none" },
      { thinkingLevel: "MINIMAL", includeThoughts: false },
      ["reasoning.effort"],
    ],
    [
      "gemini-3.8-flash",
      { effort: "none" },
      { thinkingLevel: "LOW", includeThoughts: false },
      ["reasoning.effort"],
    ],
    ...(
      [
        ["gemini-3.7-flash", "minimal", "LOW"],
        ["gemini-3.6-flash", "minimal", "MINIMAL"],
        ["gemini-3.8-flash-lite", "minimal", "MINIMAL"],
        ["gemini-flash-latest", "minimal", "LOW"],
        ["gemini-3.1-flash-image", "medium", "MINIMAL"],
      ] as const
    ).map(([model, effort, thinkingLevel]): (typeof thinking)[number] => [
      model,
      { effort },
      { thinkingLevel, includeThoughts: true },
      [],
    ]),
    ["gemini-3-pro", { effort: "minimal" }, { thinkingLevel: "LOW", includeThoughts: true }, []],
    [
      "gemini-3-pro",
      { enabled: false },
      { thinkingLevel: "LOW", includeThoughts: false },
      ["reasoning.effort"],
    ],
    [
      "gemini-3-pro",
      { budgetTokens: 2_000 },
      { thinkingLevel: "MEDIUM", includeThoughts: true },
      ["reasoning.budget_tokens"],
    ],
    [
      "gemini-2.5-flash",
      { effort: "medium" },
      { thinkingBudget: 4_096, includeThoughts: true },
      [],
    ],
    ["gemini-2.5-flash", { effort: "max" }, { thinkingBudget: 24_576, includeThoughts: true }, []],
    ["gemini-2.5-flash", { effort: "none" }, { thinkingBudget: 0, includeThoughts: false }, []],
    [
      "gemini-2.5-flash-lite",
      { budgetTokens: 100 },
      { thinkingBudget: 512, includeThoughts: true },
      [],
    ],
    [
      "gemini-2.5-pro",
      { budgetTokens: 2_000, display: "omitted" },
      { thinkingBudget: 2_000, includeThoughts: false },
      [],
    ],
    [
      "gemini-2.5-pro",
      { enabled: true, budgetTokens: 2_000 },
      { thinkingBudget: 16_384, includeThoughts: true },
      ["reasoning.budget_tokens"],
    ],
    [
      "gemini-2.5-pro",
      { effort: "none" },
      { thinkingBudget: 128, includeThoughts: false },
      ["reasoning.effort"],
    ],
    ["gemini-2.0-flash", { effort: "high" }, undefined, ["reasoning"]],
    ["gemma-3-27b-it", { effort: "none" }, undefined, []],
    ["gemini-3-pro", { summary: "auto" }, { includeThoughts: true }, ["reasoning.summary"]],
  ];
  test.each(thinking)("%s with %p", (model, reasoning, config, losses) => {
    const encoded = encode({ reasoning }, model);
    expect((encoded.body.generationConfig as JsonObject | undefined)?.thinkingConfig).toEqual(
      config as JsonObject,
    );
    expect(encoded.losses.map(({ field }) => field)).toEqual(losses);
  });
});

describe("fields that Gemini does not support are losses:", () => {
  const rows: [field: string, change: Partial<CanonicalRequest>][] = [
    ["min_p", { sampling: { minP: 0.1 } }],
    ["top_a", { sampling: { topA: 0.1 } }],
    ["repetition_penalty", { sampling: { repetitionPenalty: 1 } }],
    ["logit_bias", { sampling: { logitBias: { 5: 1 } } }],
    ["seed", { sampling: { seed: 2 ** 40 } }],
    ["stop[5]", { stop: ["1", "2", "3", "4", "5", "6"] }],
    ["verbosity", { verbosity: "low" }],
    ["prediction", { prediction: {} }],
    ["audio", { audio: { voice: "alloy" } }],
    ["moderation", { moderation: {} }],
    ["prompt_cache_key", { promptCaching: { key: "k" } }],
    ["service_tier", { serviceTier: "flex" }],
    ["x_foo", { extensions: { dialect: "openai-chat", fields: { x_foo: 1 } } }],
    [
      "messages[0].name",
      { messages: [{ role: "user", name: "n", parts: [{ type: "text", text: "a" }] }] },
    ],
    [
      "tools[0]",
      {
        tools: [
          { type: "hosted", dialect: "anthropic-messages", value: { type: "web_fetch_20250910" } },
        ],
      },
    ],
    ["tools[0].input_examples", { tools: [{ type: "function", name: "f", inputExamples: [{}] }] }],
    [
      "messages[0].content[0].citations",
      {
        messages: [
          {
            role: "user",
            parts: [{ type: "document", source: { type: "text", text: "d" }, citations: true }],
          },
        ],
      },
    ],
    [
      "messages[0].content[0].title",
      {
        messages: [
          {
            role: "user",
            parts: [
              {
                type: "document",
                source: { type: "base64", mediaType: "application/pdf", data: "AAAA" },
                title: "t",
              },
            ],
          },
        ],
      },
    ],
    [
      "messages[1].content[0]",
      {
        messages: [
          user("a"),
          { role: "assistant", parts: [{ type: "audio-output", id: "au", transcript: "said" }] },
        ],
      },
    ],
  ];
  test.each(rows)("%s", (field, change) => {
    expect(lossesOf(change)).toEqual([field]);
  });
});
