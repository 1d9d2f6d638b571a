import fc from "fast-check";
import type {
  Annotation,
  AudioOutputPart,
  RefusalPart,
  TextPart,
  AssistantPart,
  Message,
  UserPart,
  ToolCallPart,
} from "../../src/inference/canonical/message.ts";
import type {
  Finish,
  LogProbabilities,
  CanonicalResponse,
  Choice,
  MeteredUsage,
} from "../../src/inference/canonical/response.ts";
import type { JsonObject } from "../../src/inference/canonical/json.ts";
import type { ReasoningPart } from "../../src/inference/canonical/reasoning.ts";
import type { CanonicalRequest, Tool, ToolChoice } from "../../src/inference/canonical/request.ts";

const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
const name = fc.stringMatching(/^[a-zA-Z0-9_-]{1,20}$/);
const base64 = fc.base64String({ minLength: 4, maxLength: 12 });
const count = fc.nat(10_000);
const json = fc.dictionary(
  name,
  fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
  { maxKeys: 3 },
) as fc.Arbitrary<JsonObject>;

/** Generates objects that may lack any of the fields, as the canonical form's optional ones. */
const sparse = <T>(
  fields: { [K in keyof T]: fc.Arbitrary<T[K]> },
  requiredKeys: (keyof T)[],
): fc.Arbitrary<T> => fc.record(fields, { requiredKeys }) as unknown as fc.Arbitrary<T>;

const textPart: fc.Arbitrary<TextPart> = text.map((one) => ({ type: "text", text: one }));

const userPart: fc.Arbitrary<UserPart> = fc.oneof(
  textPart,
  fc
    .record({ url: fc.webUrl() })
    .map(({ url }): UserPart => ({ type: "image", source: { type: "url", url }, detail: "low" })),
  base64.map(
    (data): UserPart => ({
      type: "image",
      source: { type: "base64", mediaType: "image/png", data },
    }),
  ),
  fc.record({ data: base64, title: name }).map(
    ({ data, title }): UserPart => ({
      type: "document",
      source: { type: "base64", mediaType: "application/pdf", data },
      title,
    }),
  ),
  base64.map((data): UserPart => ({ type: "audio", data, format: "wav" })),
  text.map(
    (one): UserPart => ({
      type: "text",
      text: one,
      cache: { field: "cache_control", ttl: "1h" },
    }),
  ),
);

const toolCall = (id: string): fc.Arbitrary<ToolCallPart> =>
  fc.oneof(
    fc.record({ name, args: json }).map(
      (call): ToolCallPart => ({
        type: "tool-call",
        kind: "function",
        id,
        name: call.name,
        arguments: JSON.stringify(call.args),
      }),
    ),
    fc.record({ name, input: text }).map(
      (call): ToolCallPart => ({
        type: "tool-call",
        kind: "custom",
        id,
        name: call.name,
        arguments: call.input,
      }),
    ),
  );

/** Generates a turn with tool calls and their results, or one of text alone. */
const turn = (ordinal: number): fc.Arbitrary<Message[]> =>
  fc.oneof(
    fc.array(userPart, { maxLength: 3 }).map((parts): Message[] => [{ role: "user", parts }]),
    textPart.map((part): Message[] => [{ role: "system", parts: [part] }]),
    fc.array(textPart, { maxLength: 2 }).map((parts): Message[] => [{ role: "assistant", parts }]),
    fc
      .record({
        lead: fc.array(textPart, { maxLength: 1 }),
        thought: fc.option(text, { nil: undefined }),
        calls: fc
          .integer({ min: 1, max: 3 })
          .chain((size) =>
            fc.tuple(
              ...Array.from({ length: size }, (_, index) => toolCall(`call_${ordinal}_${index}`)),
            ),
          ),
        result: fc.array(textPart, { maxLength: 1 }),
      })
      .map(({ lead, thought, calls, result }): Message[] => [
        {
          role: "assistant",
          parts: [
            ...(thought === undefined
              ? []
              : [{ type: "reasoning", text: thought, field: "reasoning_content" } as const]),
            ...lead,
            ...calls,
          ],
        },
        ...calls.map(
          (call): Message => ({
            role: "tool",
            toolCallId: call.id,
            parts: result,
            ...(call.kind === "custom" && { kind: call.kind }),
          }),
        ),
      ]),
  );

const messages = fc
  .integer({ min: 1, max: 5 })
  .chain((size) => fc.tuple(...Array.from({ length: size }, (_, ordinal) => turn(ordinal))))
  .map((turns) => turns.flat());

const tool: fc.Arbitrary<Tool> = fc.oneof(
  sparse<Extract<Tool, { type: "function" }>>(
    {
      type: fc.constant("function"),
      name,
      description: text,
      parameters: json.map(
        (properties): JsonObject => ({ type: "object", properties, additionalProperties: false }),
      ),
      strict: fc.boolean(),
    },
    ["type", "name", "parameters"],
  ),
  sparse<Extract<Tool, { type: "custom" }>>(
    {
      type: fc.constant("custom"),
      name,
      description: text,
      format: fc.oneof(
        fc.constant({ type: "text" } as const),
        text.map((definition) => ({ type: "grammar", syntax: "lark", definition }) as const),
      ),
    },
    ["type", "name"],
  ),
  text.map(
    (value): Tool => ({
      type: "hosted",
      dialect: "openai-chat",
      value: { type: "browser_search", value },
    }),
  ),
);

const toolChoice: fc.Arbitrary<ToolChoice> = fc.oneof(
  fc.constantFrom<ToolChoice>({ type: "auto" }, { type: "none" }, { type: "required" }),
  fc.record({ name, kind: fc.constantFrom("function", "custom") }).map(
    (choice): ToolChoice => ({
      type: "tool",
      name: choice.name,
      kind: choice.kind === "custom" ? "custom" : "function",
    }),
  ),
  name.map(
    (one): ToolChoice => ({
      type: "allowed",
      mode: "required",
      tools: [{ type: "function", name: one }],
    }),
  ),
);

const toolFields = sparse<Pick<CanonicalRequest, "tools" | "toolChoice" | "parallelToolCalls">>(
  {
    tools: fc.array(tool, { minLength: 1, maxLength: 3 }),
    toolChoice,
    parallelToolCalls: fc.boolean(),
  },
  ["tools"],
);

/** Generates requests that a chat client could send, in every field that chat has. */
export const chatRequest: fc.Arbitrary<CanonicalRequest> = fc
  .tuple(
    fc.option(toolFields, { nil: {} }),
    sparse<CanonicalRequest>(
      {
        dialect: fc.constant("openai-chat"),
        model: name,
        messages,
        stream: fc.boolean(),
        sampling: sparse<NonNullable<CanonicalRequest["sampling"]>>(
          {
            temperature: fc.integer({ min: 0, max: 20 }).map((tenths) => tenths / 10),
            topP: fc.constantFrom(0, 0.5, 1),
            topK: count,
            minP: fc.constant(0.05),
            topA: fc.constant(0.1),
            frequencyPenalty: fc.constantFrom(-2, 0, 2),
            presencePenalty: fc.constantFrom(-2, 0, 2),
            repetitionPenalty: fc.constant(1.1),
            seed: fc.integer(),
            logitBias: fc.dictionary(
              fc.stringMatching(/^[0-9]{1,5}$/),
              fc.integer({ min: -100, max: 100 }),
              { maxKeys: 3 },
            ),
          },
          ["temperature"],
        ),
        choiceCount: fc.integer({ min: 1, max: 128 }),
        stop: fc.array(text, { minLength: 1, maxLength: 4 }),
        maxOutputTokens: fc.integer({ min: 1, max: 100_000 }),
        reasoning: text.map((effort) => ({ effort })),
        output: fc.oneof(
          fc.constantFrom<NonNullable<CanonicalRequest["output"]>>(
            { type: "text" },
            { type: "json" },
          ),
          sparse<Extract<CanonicalRequest["output"], { type: "json-schema" }>>(
            {
              type: fc.constant("json-schema"),
              name,
              description: text,
              schema: json,
              strict: fc.boolean(),
            },
            ["type", "name"],
          ),
        ),
        verbosity: fc.constantFrom("low", "medium", "high"),
        logProbabilities: fc.oneof(
          fc.constant({}),
          fc.nat(20).map((top) => ({ top })),
        ),
        modalities: fc.constant(["text", "audio"]),
        audio: fc.constant({ format: "mp3", voice: "alloy" }),
        prediction: text.map((content) => ({ type: "content", content })),
        webSearch: sparse<NonNullable<CanonicalRequest["webSearch"]>>(
          {
            contextSize: fc.constant("high"),
            userLocation: fc.constant({ city: "Łódź", country: "PL" }),
          },
          [],
        ),
        promptCaching: sparse<NonNullable<CanonicalRequest["promptCaching"]>>(
          { key: text, retention: fc.constant("24h"), options: fc.constant({ mode: "explicit" }) },
          ["key"],
        ),
        metadata: json,
        endUserId: text,
        safetyIdentifier: text,
        serviceTier: fc.constantFrom("auto", "flex"),
        store: fc.boolean(),
        moderation: fc.constant({ model: "omni-moderation-latest" }),
        extensions: text.map(
          (value) => ({ dialect: "openai-chat", fields: { x_foo: { deep: [value] } } }) as const,
        ),
      },
      ["dialect", "model", "messages", "stream"],
    ),
  )
  .map(([tools, request]) => ({ ...request, ...tools }));

const annotation: fc.Arbitrary<Annotation> = fc
  .record({ url: fc.webUrl(), title: text, startIndex: count, endIndex: count })
  .map((fields): Annotation => ({ type: "url", ...fields }));

const seal = { signature: base64, encrypted: base64 };
const thought = (sealed: boolean): fc.Arbitrary<ReasoningPart> => {
  const plain = text.map((one): ReasoningPart => ({ type: "reasoning", text: one }));
  if (!sealed) return plain;
  return fc.oneof(
    fc.record({ text, signature: seal.signature }).map(
      (fields): ReasoningPart => ({
        type: "reasoning",
        ...fields,
        provenance: { providerId: "acme" },
      }),
    ),
    fc.record({ encrypted: seal.encrypted, format: name }).map(
      (fields): ReasoningPart => ({
        type: "reasoning",
        ...fields,
        provenance: { providerId: "acme" },
      }),
    ),
    text.map((one): ReasoningPart => ({ type: "reasoning", summary: [one] })),
  );
};

const tokens = fc.array(
  fc
    .record({ token: text, logprob: fc.constantFrom(-0.5, 0) })
    .map((token) => ({ ...token, bytes: [97], top: [{ ...token, bytes: null }] })),
  { minLength: 1, maxLength: 3 },
);

const parts: fc.Arbitrary<AssistantPart[]> = fc
  .record({
    thoughts: fc.oneof(
      fc.array(thought(false), { maxLength: 1 }),
      fc.array(thought(true), { maxLength: 2 }),
    ),
    said: fc.oneof(
      fc.constant([]),
      fc
        .record({
          text,
          annotations: fc.option(fc.array(annotation, { minLength: 1, maxLength: 2 }), {
            nil: undefined,
          }),
        })
        .map((fields): AssistantPart[] => [
          {
            type: "text",
            text: fields.text,
            ...(fields.annotations && { annotations: fields.annotations }),
          },
        ]),
    ),
    refusal: fc.option(
      text.map((refusal): RefusalPart => ({ type: "refusal", refusal })),
      { nil: undefined },
    ),
    audio: fc.option(
      fc
        .record({ id: name, data: base64, transcript: text, expiresAtSeconds: count })
        .map((fields): AudioOutputPart => ({ type: "audio-output", ...fields })),
      { nil: undefined },
    ),
    calls: fc
      .integer({ min: 0, max: 3 })
      .chain((size) =>
        fc.tuple(...Array.from({ length: size }, (_, index) => toolCall(`call_${index}`))),
      ),
    later: fc.array(thought(true), { maxLength: 2 }),
  })
  .map(({ thoughts, said, refusal, audio, calls, later }) => {
    const [first, ...others] = calls;
    const between = thoughts.length > 0 && others.length > 0 ? later : [];
    return [
      ...thoughts,
      ...said,
      ...(refusal ? [refusal] : []),
      ...(audio ? [audio] : []),
      ...(first ? [first] : []),
      ...between,
      ...others,
    ];
  });

const finishFor = (hasCalls: boolean): fc.Arbitrary<Finish> =>
  hasCalls
    ? fc.constantFrom<Finish>({ reason: "tool_calls" }, { reason: "length" })
    : fc.constantFrom<Finish>(
        { reason: "stop" },
        { reason: "length" },
        { reason: "content_filter" },
        { reason: "stop_sequence", stopSequence: "END" },
      );

const logProbabilities: fc.Arbitrary<LogProbabilities> = tokens.map((content) => ({ content }));

const choice = (index: number): fc.Arbitrary<Choice> =>
  parts.chain((made) =>
    sparse<Choice>(
      {
        index: fc.constant(index),
        parts: fc.constant(made),
        finish: finishFor(made.some((part) => part.type === "tool-call")),
        logProbabilities,
      },
      ["index", "parts", "finish"],
    ),
  );

const usage: fc.Arbitrary<MeteredUsage> = fc
  .record(
    {
      inputTokens: count,
      outputTokens: count,
      cacheReadTokens: count,
      cacheWriteTokens: count,
      reasoningTokens: count,
      inputAudioTokens: count,
      inputImageTokens: count,
      outputAudioTokens: count,
      outputImageTokens: count,
    },
    { requiredKeys: ["inputTokens", "outputTokens"] },
  )
  .map((counts) => ({ usage: counts, estimated: false, clamped: false }));

/** Generates answers that a chat server could send. */
export const chatResponse: fc.Arbitrary<CanonicalResponse> = fc
  .integer({ min: 1, max: 2 })
  .chain((size) =>
    sparse<CanonicalResponse>(
      {
        id: name,
        model: name,
        createdAtSeconds: count,
        choices: fc.tuple(...Array.from({ length: size }, (_, index) => choice(index))),
        usage,
        serviceTier: fc.constant("default"),
        systemFingerprint: name,
      },
      ["id", "model", "createdAtSeconds", "choices"],
    ),
  )
  // A tier that an answer names is also the level that it is charged at.
  .map(({ usage: metered, ...response }) => {
    if (metered === undefined) return response;
    const { serviceTier: tier } = response;
    return {
      ...response,
      usage: tier === undefined ? metered : { ...metered, levels: { service_tier: tier } },
    };
  });
