import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../canonical/json.ts";
import type { CanonicalRequest, Tool } from "../../canonical/request.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { encodeRequest } from "./encode-request.ts";

const plain: CanonicalRequest = {
  dialect: "openai-chat",
  model: "m",
  stream: false,
  messages: [{ role: "user", parts: [{ type: "text", text: "a" }] }],
};

const encode = (
  change: Partial<CanonicalRequest>,
  options: Partial<EncodeRequestOptions> = {},
): EncodedRequest =>
  encodeRequest(
    { ...plain, ...change },
    {
      upstreamModel: "gemini-3-pro",
      stream: false,
      providerId: "google",
      searches: true,
      ...options,
    },
  );

const lossesOf = (change: Partial<CanonicalRequest>): string[] =>
  encode(change).losses.map(({ field }) => field);

describe("tools", () => {
  const tools = [{ type: "function", name: "f" }] as const;
  const configs: [
    choice: NonNullable<CanonicalRequest["toolChoice"]>,
    config: object | undefined,
  ][] = [
    [{ type: "auto" }, { mode: "AUTO" }],
    [{ type: "none" }, { mode: "NONE" }],
    [{ type: "required" }, { mode: "ANY" }],
    [
      { type: "tool", kind: "function", name: "f" },
      { mode: "ANY", allowedFunctionNames: ["f"] },
    ],
    [
      { type: "allowed", mode: "required", tools: [{ type: "function", name: "f" }] },
      { mode: "ANY", allowedFunctionNames: ["f"] },
    ],
    [{ type: "allowed", mode: "auto", tools: [{ type: "hosted", value: {} }] }, { mode: "NONE" }],
    [{ type: "hosted", dialect: "openai-responses", value: { type: "file_search" } }, undefined],
  ];
  test.each(configs)("have the choice %p", (toolChoice, config) => {
    expect(
      (encode({ tools, toolChoice }).body.toolConfig as JsonObject | undefined)
        ?.functionCallingConfig,
    ).toEqual(config as JsonObject);
  });

  test("omit a tool choice without tools", () => {
    expect(encode({ toolChoice: { type: "required" } }).body).toEqual({
      contents: [{ role: "user", parts: [{ text: "a" }] }],
    });
  });

  test("restore names that Gemini refuses", () => {
    const { body, toolAliases } = encode({
      tools: [
        { type: "function", name: "1st" },
        { type: "custom", name: "-x" },
        { type: "function", name: "файл" },
      ],
    });
    const [entry] = body.tools as { functionDeclarations: { name: string }[] }[];
    const names = entry?.functionDeclarations.map(({ name }) => name) ?? [];
    for (const name of names) expect(name).toMatch(/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/);
    expect(names.map((name) => toolAliases.get(name))).toEqual([
      { name: "1st" },
      { name: "-x", unwrapsInput: true },
      { name: "файл" },
    ]);
  });

  test("keep their schemas unchanged", () => {
    const parameters = {
      $schema: "x",
      type: "object",
      properties: {},
      additionalProperties: false,
    };
    expect(
      encode({
        tools: [
          { type: "function", name: "f", parameters },
          { type: "function", name: "g", parameters: { type: "object" } },
        ],
      }).body.tools,
    ).toEqual([
      {
        functionDeclarations: [
          { name: "f", parametersJsonSchema: parameters },
          { name: "g", parametersJsonSchema: { type: "object", properties: {} } },
        ],
      },
    ]);
  });

  test("use Gemini's own web search, beside functions where the model has both", () => {
    expect(encode({ webSearch: {} }).body).toMatchObject({ tools: [{ googleSearch: {} }] });
    const asked = { webSearch: {}, tools, toolChoice: { type: "auto" } } as const;
    expect(encode(asked).body).toMatchObject({
      tools: [{ functionDeclarations: [{ name: "f" }] }, { googleSearch: {} }],
      toolConfig: {
        functionCallingConfig: { mode: "VALIDATED" },
        includeServerSideToolInvocations: true,
      },
    });
    expect(lossesOf(asked)).toEqual([]);
    for (const options of [
      { upstreamModel: "gemini-2.5-pro" },
      { deviations: { searchesAlone: true } },
    ]) {
      const { body, losses } = encode(asked, options);
      expect(body).toMatchObject({ toolConfig: { functionCallingConfig: { mode: "AUTO" } } });
      expect(losses.map(({ field }) => field)).toEqual(["web_search_options"]);
    }
  });

  test("search in place of another vendor's web search, whose fields are losses", () => {
    const search: Tool = {
      type: "hosted",
      dialect: "anthropic-messages",
      value: {
        type: "web_search_20250305",
        name: "web_search",
        max_uses: 2,
        allowed_domains: ["a"],
        blocked_domains: null,
      },
    };
    expect(encode({ tools: [search] }).body.tools).toEqual([{ googleSearch: {} }]);
    expect(lossesOf({ tools: [search] })).toEqual([
      "tools[0].max_uses",
      "tools[0].allowed_domains",
    ]);
  });
});
