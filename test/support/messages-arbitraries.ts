import fc from "fast-check";
import type {
  Annotation,
  DocumentPart,
  ImagePart,
  TextPart,
  AssistantPart,
  Message,
  ToolResultPart,
  UserPart,
  ToolCallPart,
} from "../../src/inference/canonical/message.ts";
import type {
  Finish,
  CanonicalResponse,
  MeteredUsage,
} from "../../src/inference/canonical/response.ts";
import type { JsonObject } from "../../src/inference/canonical/json.ts";
import type { ReasoningPart, ReasoningRequest } from "../../src/inference/canonical/reasoning.ts";
import type { CanonicalRequest, Tool, ToolChoice } from "../../src/inference/canonical/request.ts";

const dialect = "anthropic-messages" as const;
const name = fc.stringMatching(/^[a-zA-Z0-9_-]{1,20}$/);
// A blank text is not a block, and white space at the end of the last turn is removed.
const text = fc.string({ unit: "grapheme", maxLength: 20 }).map((rest) => `${rest}.`);
const base64 = fc.base64String({ minLength: 4, maxLength: 12 });
const count = fc.nat(10_000);
const json = fc.dictionary(
  name.filter((key) => key !== "__proto__"),
  fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
  { maxKeys: 3 },
) as fc.Arbitrary<JsonObject>;
const cache = fc.constantFrom({}, { ttl: "5m" } as const, { ttl: "1h" } as const);
const extensions = name.map((value) => ({ dialect, fields: { x_foo: { deep: [value] } } }));

/** Generates objects that may lack any of the fields, as the canonical form's optional ones. */
const sparse = <T>(
  fields: { [K in keyof T]: fc.Arbitrary<T[K]> },
  requiredKeys: (keyof T)[],
): fc.Arbitrary<T> => fc.record(fields, { requiredKeys }) as unknown as fc.Arbitrary<T>;

const textPart = sparse<TextPart>({ type: fc.constant("text"), text, cache, extensions }, [
  "type",
  "text",
]);
const imagePart = sparse<ImagePart>(
  {
    type: fc.constant("image"),
    source: fc.oneof(
      fc.webUrl().map((url) => ({ type: "url", url }) as const),
      base64.map((data) => ({ type: "base64", mediaType: "image/png", data }) as const),
      name.map((fileId) => ({ type: "file", fileId }) as const),
    ),
    cache,
  },
  ["type", "source"],
);
const documentPart = sparse<DocumentPart>(
  {
    type: fc.constant("document"),
    source: fc.oneof(
      base64.map((data) => ({ type: "base64", mediaType: "application/pdf", data }) as const),
      text.map((one) => ({ type: "text", text: one }) as const),
      fc.webUrl().map((url) => ({ type: "url", url }) as const),
      fc
        .array(fc.oneof(textPart, imagePart), { minLength: 1, maxLength: 2 })
        .map((parts) => ({ type: "parts", parts }) as const),
    ),
    title: text,
    context: text,
    citations: fc.boolean(),
    cache,
    extensions,
  },
  ["type", "source"],
);
const opaqueOf = (type: string): fc.Arbitrary<Extract<UserPart, { type: "opaque" }>> =>
  name.map((id) => ({ type: "opaque", dialect, value: { type, id } }));

const userPart: fc.Arbitrary<UserPart> = fc.oneof(
  textPart,
  imagePart,
  documentPart,
  opaqueOf("container_upload"),
);
const resultPart: fc.Arbitrary<ToolResultPart> = fc.oneof(
  textPart,
  imagePart,
  documentPart,
  opaqueOf("tool_reference"),
);

const annotation: fc.Arbitrary<Annotation> = fc.oneof(
  fc
    .record({
      documentIndex: count,
      start: count,
      end: count,
      citedText: text,
      unit: fc.constantFrom("character", "page", "block"),
    })
    .map((fields): Annotation => ({ type: "document", ...fields })),
  fc.record({ url: fc.webUrl(), citedText: text, index: base64 }).map(
    ({ url, citedText, index }): Annotation => ({
      type: "url",
      url,
      citedText,
      extensions: { dialect, fields: { encrypted_index: index } },
    }),
  ),
  name.map(
    (source): Annotation => ({
      type: "opaque",
      dialect,
      value: { type: "search_result_location", source },
    }),
  ),
);
const saidPart = sparse<TextPart>(
  {
    type: fc.constant("text"),
    text,
    annotations: fc.array(annotation, { minLength: 1, maxLength: 2 }),
  },
  ["type", "text"],
);

const thought: fc.Arbitrary<ReasoningPart> = fc.oneof(
  fc
    .record({ text, signature: base64 })
    .map((fields): ReasoningPart => ({ type: "reasoning", ...fields })),
  base64.map((signature): ReasoningPart => ({ type: "reasoning", signature })),
  base64.map((encrypted): ReasoningPart => ({ type: "reasoning", encrypted })),
);

const toolCall = (id: string): fc.Arbitrary<ToolCallPart> =>
  fc.record({ called: name, input: json }).map(({ called, input }) => ({
    type: "tool-call",
    kind: "function",
    id,
    name: called,
    arguments: JSON.stringify(input),
  }));

const calls = (ordinal: number): fc.Arbitrary<ToolCallPart[]> =>
  fc
    .integer({ min: 1, max: 3 })
    .chain((size) =>
      fc.tuple(
        ...Array.from({ length: size }, (_, index) => toolCall(`toolu_${ordinal}_${index}`)),
      ),
    );

/** Generates a question with its answer, which may call tools and get their results. */
const exchange = (ordinal: number): fc.Arbitrary<Message[]> =>
  fc
    .record({
      asked: fc.array(userPart, { minLength: 1, maxLength: 3 }),
      thoughts: fc.array(thought, { maxLength: 2 }),
      said: fc.array(saidPart, { maxLength: 2 }),
      called: fc.oneof(fc.constant<ToolCallPart[]>([]), calls(ordinal)),
      results: fc.array(resultPart, { maxLength: 2 }),
      isError: fc.option(fc.boolean(), { nil: undefined }),
      own: fc.option(opaqueOf("server_tool_use"), { nil: undefined }),
    })
    .map(({ asked, thoughts, said, called, results, isError, own }): Message[] => {
      const parts: AssistantPart[] = [...thoughts, ...said, ...(own ? [own] : []), ...called];
      return [
        { role: "user", parts: asked },
        ...(parts.length === 0 ? [] : [{ role: "assistant", parts } as const]),
        ...called.map(
          ({ id }): Message => ({
            role: "tool",
            toolCallId: id,
            parts: results,
            ...(isError !== undefined && { isError }),
          }),
        ),
      ];
    });

const messages = fc
  .tuple(
    fc.option(fc.array(textPart, { minLength: 1, maxLength: 2 }), { nil: undefined }),
    fc
      .integer({ min: 1, max: 4 })
      .chain((size) =>
        fc.tuple(...Array.from({ length: size }, (_, ordinal) => exchange(ordinal))),
      ),
  )
  .map(([system, turns]): Message[] => [
    ...(system ? [{ role: "system", parts: system } as const] : []),
    ...turns.flat(),
  ]);

const tool: fc.Arbitrary<Tool> = fc.oneof(
  sparse<Extract<Tool, { type: "function" }>>(
    {
      type: fc.constant("function"),
      name,
      description: text,
      strict: fc.boolean(),
      deferred: fc.boolean(),
      cache,
      extensions,
      parameters: json.map((properties): JsonObject => ({ type: "object", properties })),
      inputExamples: fc.array(json, { minLength: 1, maxLength: 2 }),
    },
    ["type", "name", "parameters"],
  ),
  name.map(
    (one): Tool => ({ type: "hosted", dialect, value: { type: "web_search_20260318", name: one } }),
  ),
);
const toolChoice: fc.Arbitrary<ToolChoice> = fc.oneof(
  fc.constantFrom<ToolChoice>({ type: "auto" }, { type: "required" }),
  name.map((one): ToolChoice => ({ type: "tool", kind: "function", name: one })),
);
const toolFields = sparse<Pick<CanonicalRequest, "tools" | "toolChoice" | "parallelToolCalls">>(
  {
    tools: fc.array(tool, { minLength: 1, maxLength: 3 }),
    toolChoice,
    parallelToolCalls: fc.boolean(),
  },
  ["tools", "toolChoice"],
);

const reasoning: fc.Arbitrary<ReasoningRequest> = fc.oneof(
  fc.constantFrom<ReasoningRequest>(
    { enabled: false },
    { mode: "between_tools" },
    { mode: "adaptive", display: "updates", effort: "xhigh" },
    { effort: "low" },
  ),
  count.map(
    (budgetTokens): ReasoningRequest => ({ enabled: true, budgetTokens, display: "summarized" }),
  ),
);

/** Generates requests that a Messages client could send, in every field that Messages has. */
export const messagesRequest: fc.Arbitrary<CanonicalRequest> = fc
  .tuple(
    fc.option(toolFields, { nil: {} }),
    sparse<CanonicalRequest>(
      {
        dialect: fc.constant(dialect),
        model: name,
        messages,
        stream: fc.boolean(),
        maxOutputTokens: count,
        sampling: sparse<NonNullable<CanonicalRequest["sampling"]>>(
          {
            temperature: fc.constantFrom(0, 0.5, 1),
            topP: fc.constantFrom(0, 0.5, 1),
            topK: count,
          },
          ["temperature"],
        ),
        stop: fc.array(text, { minLength: 1, maxLength: 6 }),
        reasoning,
        output: json.map((schema) => ({ type: "json-schema", schema, strict: true }) as const),
        endUserId: text,
        serviceTier: fc.constantFrom("auto", "standard_only"),
        extensions: text.map((value) => ({
          dialect,
          fields: {
            container: { id: value },
            metadata: { tenant: value },
            output_config: { task_budget: 1 },
            x_foo: { deep: [value] },
          },
        })),
      },
      ["dialect", "model", "messages", "stream", "maxOutputTokens"],
    ),
  )
  .map(([tools, request]) => ({ ...request, ...tools }));

const finishFor = (hasCalls: boolean): fc.Arbitrary<Finish> =>
  hasCalls
    ? fc.constantFrom<Finish>({ reason: "tool_calls" }, { reason: "length" })
    : fc.constantFrom<Finish>(
        { reason: "stop" },
        { reason: "length" },
        { reason: "pause" },
        { reason: "stop_sequence", stopSequence: "END" },
        { reason: "refusal", category: "bio", explanation: "No." },
      );

const usage: fc.Arbitrary<MeteredUsage> = fc
  .record(
    {
      inputTokens: count,
      outputTokens: count,
      cacheReadTokens: count,
      cacheWriteTokens: count,
      reasoningTokens: count,
    },
    { requiredKeys: ["inputTokens", "outputTokens"] },
  )
  .map((counts) => ({ usage: counts, estimated: false, clamped: false }));

/** Generates answers that a Messages server could send. */
export const messagesResponse: fc.Arbitrary<CanonicalResponse> = fc
  .record({
    thoughts: fc.array(thought, { maxLength: 2 }),
    said: fc.array(saidPart, { maxLength: 2 }),
    own: fc.option(opaqueOf("server_tool_use"), { nil: undefined }),
    called: fc.option(calls(0), { nil: [] }),
    id: name,
    model: name,
    usage,
  })
  .chain(({ thoughts, said, own, called, id, model, usage: used }) =>
    finishFor(called.length > 0).map(
      (finish): CanonicalResponse => ({
        id,
        model,
        createdAtSeconds: 0,
        usage: used,
        choices: [
          { index: 0, parts: [...thoughts, ...said, ...(own ? [own] : []), ...called], finish },
        ],
      }),
    ),
  );
