import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chatRequest, chatResponse } from "../../../../test/support/canonical-arbitraries.ts";
import type { Message } from "../../canonical/message.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import { responseParts, type CanonicalResponse } from "../../canonical/response.ts";
import { SseDecoder } from "../../upstream/sse-decoder.ts";
import { withoutUndefined } from "../shared/wire-fields.ts";
import { openaiResponses } from "./index.ts";
import { decodeReasoningItem } from "./answer-fields.ts";

/** Everything that JSON would carry: a wire body as the other side parses it. */
const overTheWire = (body: unknown): unknown => JSON.parse(JSON.stringify(body));

/**
 * The same request as a Responses client could have sent it: without what this dialect has no words
 * for.
 */
function asResponses(request: CanonicalRequest): CanonicalRequest {
  const {
    choiceCount: _count,
    stop: _stop,
    prediction: _prediction,
    audio: _audio,
    webSearch: _search,
    streamOptions: _options,
    ...rest
  } = request;
  const { logitBias: _bias, ...sampling } = rest.sampling ?? {};
  const own = JSON.parse(
    JSON.stringify(rest).replaceAll('"openai-chat"', '"openai-responses"'),
  ) as CanonicalRequest;
  return withoutUndefined<CanonicalRequest>({
    ...own,
    messages: turnsOf(own.messages.map(withoutField)),
    sampling: rest.sampling && sampling,
    maxOutputTokens: rest.maxOutputTokens && Math.max(16, rest.maxOutputTokens),
    modalities: rest.modalities && ["text"],
    store: false,
  });
}

/**
 * Messages of the model that follow each other are one turn here, and its later messages are set
 * apart.
 */
function turnsOf(messages: readonly Message[]): Message[] {
  const turns: Message[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (message.role !== "assistant" || last?.role !== "assistant") turns.push(message);
    else turns.push({ ...(turns.pop() as typeof last), parts: [...last.parts, ...message.parts] });
  }
  return turns.map(
    (turn): Message =>
      turn.role === "assistant" ? { ...turn, parts: oneMessage(turn.parts) } : turn,
  );
}

/**
 * Texts in front of the calls, so that they are one message; texts after calls would be another.
 */
function oneMessage(
  parts: Extract<Message, { role: "assistant" }>["parts"],
): Extract<Message, { role: "assistant" }>["parts"] {
  const texts = parts.filter((part) => part.type === "text");
  const thoughts = parts.filter((part) => part.type === "reasoning");
  return [
    ...thoughts,
    ...texts,
    ...parts.filter((part) => part.type !== "text" && part.type !== "reasoning"),
  ];
}

const withoutField = (message: Message): Message =>
  message.role !== "assistant"
    ? message
    : {
        ...message,
        parts: message.parts.map((part) => {
          if (part.type !== "reasoning") return part;
          const { field: _field, ...rest } = part;
          return rest;
        }),
      };

describe("requests survive decode(encode(x))", () => {
  test("in the same dialect, in every field and without a loss", () => {
    fc.assert(
      fc.property(chatRequest.map(asResponses), (request) => {
        const encoded = openaiResponses.encodeRequest(request, {
          upstreamModel: request.model,
          stream: request.stream,
          providerId: "acme",
        });
        expect(encoded.losses).toEqual([]);
        const decoded = openaiResponses.decodeRequest(overTheWire(encoded.body));
        const { parallelToolCalls, ...rest } = request;
        // Said by the dialect: nothing is parallel where no tool may be called.
        const keepsParallel =
          parallelToolCalls !== undefined && request.toolChoice?.type !== "none";
        expect(decoded).toEqual({ ...rest, ...(keepsParallel && { parallelToolCalls }) });
      }),
      { numRuns: 500 },
    );
  });

  type Extra = [what: string, field: string, change: Partial<CanonicalRequest>];
  const extras: Extra[] = [
    ["stop sequences", "stop", { stop: ["END"] }],
    ["a seed", "seed", { sampling: { temperature: 1, seed: 1 } }],
    ["a logit bias", "logit_bias", { sampling: { logitBias: { 1: 2 } } }],
    [
      "a thinking budget",
      "reasoning.budget_tokens",
      { reasoning: { effort: "low", budgetTokens: 2_000 } },
    ],
    ["an output limit below the minimum", "max_output_tokens", { maxOutputTokens: 5 }],
    ["a prediction", "prediction", { prediction: { type: "content", content: "a" } }],
    [
      "names of participants",
      "messages[0].name",
      { messages: [{ role: "user", name: "Ann", parts: [] }] },
    ],
    [
      "cache markers",
      "cache_control",
      { messages: [{ role: "user", parts: [{ type: "text", text: "a", cache: {} }] }] },
    ],
    [
      "tool examples",
      "tools[0].input_examples",
      { tools: [{ type: "function", name: "f", inputExamples: [{}] }] },
    ],
    [
      "a hosted tool of another dialect",
      "tools[0]",
      {
        tools: [
          { type: "hosted", dialect: "anthropic-messages", value: { type: "web_search_20250305" } },
        ],
      },
    ],
    [
      "fields of another dialect",
      "container",
      { extensions: { dialect: "anthropic-messages", fields: { container: "c" } } },
    ],
    [
      "reasoning that the upstream refuses",
      "messages[0].content[0]",
      {
        messages: [
          {
            role: "assistant",
            parts: [
              { type: "reasoning", text: "t" },
              { type: "text", text: "a" },
            ],
          },
        ],
      },
    ],
    [
      "signed reasoning",
      "messages[0].content[0]",
      {
        messages: [
          {
            role: "assistant",
            parts: [
              { type: "reasoning", text: "t", signature: "s" },
              { type: "text", text: "a" },
            ],
          },
        ],
      },
    ],
  ];
  const plain: CanonicalRequest = {
    dialect: "anthropic-messages",
    model: "m",
    stream: false,
    messages: [{ role: "user", parts: [{ type: "text", text: "a" }] }],
  };
  test.each(extras)("with %s as a loss", (_what, field, change) => {
    const { losses } = openaiResponses.encodeRequest(
      { ...plain, ...change },
      { upstreamModel: "m", stream: false, providerId: "acme" },
    );
    expect(losses.map((loss) => loss.field)).toEqual([field]);
  });
});

describe("responses survive decode(encode(x))", () => {
  const one = chatResponse.map((response) => ({
    ...response,
    choices: response.choices.slice(0, 1),
  }));

  test("whole", () => {
    fc.assert(
      fc.property(one, (response) => {
        const decoded = openaiResponses.decodeResponse(
          overTheWire(openaiResponses.encodeResponse(response)),
          {},
        );
        expect(comparable(decoded)).toEqual(comparable(response));
      }),
      { numRuns: 500 },
    );
  });

  test("as a stream, at any split", () => {
    fc.assert(
      fc.property(one, fc.nat(), (response, cut) => {
        expect(comparable(throughStream(response, cut))).toEqual(comparable(response));
      }),
      { numRuns: 300 },
    );
  });
});

/** The answer as a client of the gateway would put it together, out of frames cut in two. */
function throughStream(response: CanonicalResponse, cut: number): CanonicalResponse {
  const encoder = openaiResponses.createStreamEncoder();
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
  const decoder = openaiResponses.createStreamDecoder({});
  const assembler = new ResponseAssembler();
  for (const event of events) for (const part of decoder.decode(event)) assembler.add(part);
  for (const part of decoder.end()) assembler.add(part);
  expect(assembler.error).toBeUndefined();
  return assembler.response();
}

/**
 * What Responses does not say: which stop text matched, the fingerprint, bytes of sound (its
 * transcript is text), that a thought is no summary, and log probabilities without text to stand
 * on. Ids of items are the encoder's own. A seal holds what was sealed.
 */
function comparable(response: CanonicalResponse): unknown {
  const {
    id,
    model,
    createdAtSeconds,
    serviceTier = "default",
    choices: [choice],
    usage,
  } = response;
  const parts = choice?.parts ?? [];
  const said = parts
    .map((part) =>
      part.type === "text"
        ? part.text
        : part.type === "audio-output"
          ? (part.transcript ?? "")
          : "",
    )
    .join("");
  const reason = choice?.finish.reason === "stop_sequence" ? "stop" : choice?.finish.reason;
  return {
    id,
    model,
    createdAtSeconds,
    serviceTier,
    reason,
    said,
    refusals: parts.flatMap((part) => (part.type === "refusal" ? [part.refusal] : [])),
    citations: parts.flatMap((part) => (part.type === "text" ? (part.annotations ?? []) : [])),
    calls: parts.flatMap((part) =>
      part.type === "tool-call" ? [[part.kind, part.id, part.name, part.arguments]] : [],
    ),
    thoughts: parts.flatMap((part) => {
      if (part.type !== "reasoning") return [];
      const opened = part.encrypted?.startsWith("gw1:")
        ? decodeReasoningItem({
            encrypted_content: part.encrypted,
            summary: (part.summary ?? []).map((text) => ({ text })),
          })
        : part;
      if ("callId" in opened) return [];
      return [
        {
          shown: [...(opened.summary ?? []), opened.text ?? ""].join(""),
          seal: opened.signature ?? opened.encrypted,
          maker: opened.provenance,
        },
      ];
    }),
    logProbabilities: said === "" ? undefined : choice?.logProbabilities,
    usage: usage && {
      ...usage,
      levels: { service_tier: serviceTier },
      usage: { cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, ...usage.usage },
    },
  };
}
