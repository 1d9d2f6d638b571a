import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chatRequest, chatResponse } from "../../../../test/support/canonical-arbitraries.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import { responseParts, type CanonicalResponse } from "../../canonical/response.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import { SseDecoder } from "../../upstream/sse-decoder.ts";
import { openaiChat } from "./index.ts";

/** Everything that JSON would carry: a wire body as the other side parses it. */
const overTheWire = (body: unknown): unknown => JSON.parse(JSON.stringify(body));

describe("requests survive decode(encode(x))", () => {
  test("in the same dialect, in every field and without a loss", () => {
    fc.assert(
      fc.property(chatRequest, (request) => {
        const encoded = openaiChat.encodeRequest(request, {
          upstreamModel: request.model,
          stream: request.stream,
          providerId: "acme",
        });
        expect(encoded.losses).toEqual([]);
        const decoded = openaiChat.decodeRequest(overTheWire(encoded.body));
        const { parallelToolCalls, ...rest } = request;
        // Said by the dialect: usage is asked for on every stream, and nothing is parallel where no
        // tool may be called.
        const expected: CanonicalRequest = {
          ...rest,
          ...(request.stream && { streamOptions: { includeUsage: true } }),
          ...(parallelToolCalls !== undefined &&
            request.toolChoice?.type !== "none" && { parallelToolCalls }),
        };
        expect(decoded).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  type Extra = [
    what: string,
    field: string,
    change: (request: CanonicalRequest) => CanonicalRequest,
  ];
  const extras: Extra[] = [
    [
      "a thinking budget",
      "reasoning.budget_tokens",
      (request) => ({ ...request, reasoning: { effort: "low", budgetTokens: 2_000 } }),
    ],
    [
      "a summary style",
      "reasoning.summary",
      (request) => ({ ...request, reasoning: { effort: "low", summary: "auto" } }),
    ],
    [
      "a display style",
      "reasoning.display",
      (request) => ({ ...request, reasoning: { effort: "low", display: "omitted" } }),
    ],
    [
      "cache markers",
      "cache_control",
      (request) => ({
        ...request,
        messages: [{ role: "user", parts: [{ type: "text", text: "a", cache: {} }] }],
      }),
    ],
    [
      "citations",
      "messages[0].content[0].citations",
      (request) => ({
        ...request,
        messages: [
          {
            role: "user",
            parts: [
              {
                type: "document",
                source: { type: "base64", mediaType: "application/pdf", data: "AAAA" },
                citations: true,
              },
            ],
          },
        ],
      }),
    ],
    [
      "document context",
      "messages[0].content[0].context",
      (request) => ({
        ...request,
        messages: [
          {
            role: "user",
            parts: [
              {
                type: "document",
                source: { type: "base64", mediaType: "application/pdf", data: "AAAA" },
                context: "c",
              },
            ],
          },
        ],
      }),
    ],
    [
      "reasoning that the upstream refuses",
      "messages[1].content[0]",
      (request) => ({
        ...request,
        messages: [
          { role: "user", parts: [] },
          {
            role: "assistant",
            parts: [
              { type: "reasoning", text: "t" },
              { type: "text", text: "a" },
            ],
          },
        ],
      }),
    ],
    [
      "tool examples",
      "tools[0].input_examples",
      (request) => ({
        ...request,
        tools: [
          {
            type: "function",
            name: "f",
            parameters: { type: "object", properties: {} },
            inputExamples: [{}],
          },
        ],
      }),
    ],
    [
      "a hosted tool of another dialect",
      "tools[0]",
      (request) => ({
        ...request,
        tools: [
          { type: "hosted", dialect: "anthropic-messages", value: { type: "web_search_20250305" } },
        ],
      }),
    ],
    [
      "fields of another dialect",
      "container",
      (request) => ({
        ...request,
        extensions: { dialect: "anthropic-messages", fields: { container: "c" } },
      }),
    ],
    [
      "a fifth stop sequence",
      "stop[4]",
      (request) => ({ ...request, stop: ["a", "b", "c", "d", "e"] }),
    ],
    [
      "a prompt cache key",
      "prompt_cache_key",
      (request) => ({ ...request, promptCaching: { key: "k" } }),
    ],
  ];
  const plain: CanonicalRequest = {
    dialect: "anthropic-messages",
    model: "m",
    stream: false,
    messages: [{ role: "user", parts: [{ type: "text", text: "a" }] }],
  };
  test.each(extras)("with %s as a loss", (_what, field, change) => {
    const { losses } = openaiChat.encodeRequest(change(plain), {
      upstreamModel: "m",
      stream: false,
      providerId: "acme",
    });
    expect(losses.map((loss) => loss.field)).toEqual([field]);
  });

  test("with a field that the upstream refuses omitted, as a loss", () => {
    const { body, losses } = openaiChat.encodeRequest(
      { ...plain, sampling: { seed: 1, topK: 5 } },
      {
        upstreamModel: "m",
        stream: false,
        providerId: "acme",
        deviations: { unsupportedFields: ["top_k", "logprobs"] },
      },
    );
    expect(body).toEqual({ model: "m", messages: [{ role: "user", content: "a" }], seed: 1 });
    expect(losses).toEqual([{ field: "top_k", reason: "the upstream does not take it" }]);
  });
});

describe("responses survive decode(encode(x))", () => {
  test("whole", () => {
    fc.assert(
      fc.property(chatResponse, (response) => {
        const decoded = openaiChat.decodeResponse(
          overTheWire(openaiChat.encodeResponse(response)),
          {},
        );
        expect(withOpenSeals(decoded)).toEqual(response);
      }),
      { numRuns: 500 },
    );
  });

  test("as a stream, at any split", () => {
    fc.assert(
      fc.property(chatResponse, fc.nat(), (response, cut) => {
        const streamed = throughStream(response, cut);
        expect(comparable(withOpenSeals(streamed))).toEqual(comparable(response));
      }),
      { numRuns: 300 },
    );
  });

  test("as parts", () => {
    fc.assert(
      fc.property(chatResponse, (response) => {
        const assembler = new ResponseAssembler();
        for (const part of responseParts(response)) assembler.add(part);
        expect(assembler.response()).toEqual(response);
      }),
      { numRuns: 300 },
    );
  });
});

/** The answer as a client of the gateway would put it together, out of frames cut in two. */
function throughStream(response: CanonicalResponse, cut: number): CanonicalResponse {
  const encoder = openaiChat.createStreamEncoder();
  const bytes = Buffer.from(
    responseParts(response)
      .flatMap((part) => encoder.encode(part))
      .join(""),
  );
  const sse = new SseDecoder();
  const at = cut % (bytes.length + 1);
  const events = [
    ...sse.push(bytes.subarray(0, at)),
    ...sse.push(bytes.subarray(at)),
    ...sse.end(),
  ];
  const decoder = openaiChat.createStreamDecoder({});
  const assembler = new ResponseAssembler();
  for (const event of events) for (const part of decoder.decode(event)) assembler.add(part);
  for (const part of decoder.end()) assembler.add(part);
  expect(assembler.error).toBeUndefined();
  return assembler.response();
}

/** An upstream's seals are its own; this upstream was the gateway, whose mark is opened here. */
function withOpenSeals(response: CanonicalResponse): CanonicalResponse {
  const open = (seal: string | undefined): string | undefined => seal?.replace(/^gw1:acme:/, "");
  return {
    ...response,
    choices: response.choices.map((choice) => ({
      ...choice,
      parts: choice.parts.map((part) => {
        if (part.type !== "reasoning" || (part.signature ?? part.encrypted) === undefined)
          return part;
        const { signature, encrypted, ...rest } = part;
        return {
          ...rest,
          provenance: { providerId: "acme" },
          ...(signature !== undefined && { signature: open(signature) ?? "" }),
          ...(encrypted !== undefined && { encrypted: open(encrypted) ?? "" }),
        };
      }),
    })),
  };
}

/**
 * What a stream of chat does not say: where a summary is a summary (its text streams as plain
 * thought), that a thought between calls stands there, and log probabilities without text to stand
 * on.
 */
function comparable(response: CanonicalResponse): unknown {
  return {
    ...response,
    choices: response.choices.map(({ parts, ...choice }) => ({
      ...choice,
      said: parts.filter((part) => part.type !== "reasoning"),
      thoughts: parts
        .flatMap((part) =>
          part.type === "reasoning" ? [part.text ?? part.summary?.join("") ?? ""] : [],
        )
        .join(""),
      seals: parts
        .flatMap((part) => (part.type === "reasoning" ? [part.signature, part.encrypted] : []))
        .filter((seal) => seal !== undefined),
    })),
  };
}
