import {
  all,
  at,
  blocksOf,
  fieldsOf,
  hasTwins,
  isOther,
  isSet,
  listOf,
  not,
  schemasIn,
  someBlock,
  someTurn,
  turnsOf,
} from "../reading.ts";
import { type Fields, rulesOf, type VendorRequest, type VendorRule } from "../rule.ts";
import { askGemini, geminiTool, schemaOf } from "../samples.ts";

const envelope = ({ message }: { message: string }): Fields => ({
  error: { code: 400, message, status: "INVALID_ARGUMENT" },
});

const declarationsOf = ({ body }: VendorRequest): Fields[] =>
  listOf(body["tools"]).flatMap(({ functionDeclarations }) => listOf(functionDeclarations));
const offersFunctions = (request: VendorRequest): boolean => declarationsOf(request).length > 0;
const searches = ({ body }: VendorRequest): boolean =>
  listOf(body["tools"]).some(({ googleSearch }) => googleSearch !== undefined);
const modeOf = ({ body }: VendorRequest): unknown =>
  at(body, "toolConfig.functionCallingConfig.mode");
const asksJson = ({ body }: VendorRequest): boolean =>
  at(body, "generationConfig.responseMimeType") === "application/json";
const callsOf = (turn: Fields | undefined): Fields[] =>
  blocksOf(turn ?? {}).filter(({ functionCall }) => functionCall !== undefined);
const resultsOf = (turn: Fields | undefined): Fields[] =>
  blocksOf(turn ?? {}).filter(({ functionResponse }) => functionResponse !== undefined);
const config = (fields: Fields): Fields => askGemini({ generationConfig: fields });

const user = (text: string): Fields => ({ role: "user", parts: [{ text }] });
const calling = (more: Fields = {}): Fields => ({
  role: "model",
  parts: [{ functionCall: { name: "look_up", args: {} }, ...more }],
});
const answering: Fields = {
  role: "user",
  parts: [{ functionResponse: { name: "look_up", response: { result: "sunny" } } }],
};
const picture: Fields = { inlineData: { mimeType: "image/png", data: "iVBO" } };

const thinkingDocs = "ai.google.dev/gemini-api/docs/thinking (2026-11)";
const reference = "ai.google.dev/api/generate-content (2026-11)";

const generationRules = rulesOf({ vendor: "google", endpoint: "generate", body: envelope }, [
  {
    id: "json-beside-forced-functions",
    when: all(asksJson, offersFunctions, (request) => modeOf(request) === "ANY"),
    says: "Forced function calling (ANY mode) with a response mime type: 'application/json' is unsupported",
    source: "github.com/vercel/ai/pull/16540 (2026-07-01)",
    violates: {
      model: "gemini-3-flash-preview",
      body: {
        ...config({ responseMimeType: "application/json" }),
        tools: [geminiTool()],
        toolConfig: { functionCallingConfig: { mode: "ANY" } },
      },
    },
  },
  {
    id: "json-beside-functions",
    models: /gemini-(?:1|2)/,
    when: all(asksJson, offersFunctions),
    says: "Function calling with a response mime type: 'application/json' is unsupported",
    source: "github.com/symfony/ai/issues/1777 (2026-03-16)",
    violates: {
      model: "gemini-2.5-flash",
      body: { ...config({ responseMimeType: "application/json" }), tools: [geminiTool()] },
    },
  },
  {
    id: "json-beside-search",
    models: /gemini-(?:1|2)/,
    when: all(asksJson, searches),
    says: "Tool use with a response mime type: 'application/json' is unsupported",
    source: "github.com/tbphp/gpt-load/issues/188, snailyp/gemini-balance/pull/286 (2025-08-18)",
    violates: {
      model: "gemini-2.5-flash",
      body: { ...config({ responseMimeType: "application/json" }), tools: [{ googleSearch: {} }] },
    },
  },
  {
    id: "level-and-budget",
    when: all(
      isSet("generationConfig.thinkingConfig.thinkingLevel"),
      isSet("generationConfig.thinkingConfig.thinkingBudget"),
    ),
    says: "You can only set only one of thinking budget and thinking level.",
    source: thinkingDocs,
    violates: {
      model: "gemini-3-flash-preview",
      body: config({ thinkingConfig: { thinkingLevel: "LOW", thinkingBudget: 512 } }),
    },
  },
  {
    id: "level-on-older",
    models: /gemini-2/,
    when: isSet("generationConfig.thinkingConfig.thinkingLevel"),
    says: "Thinking level is not supported for this model.",
    source: thinkingDocs,
    violates: {
      model: "gemini-2.5-flash",
      body: config({ thinkingConfig: { thinkingLevel: "LOW" } }),
    },
  },
  {
    id: "level-minimal-on-pro",
    models: /gemini-3[.\d]*-pro/,
    when: ({ body }) =>
      /^minimal$/i.test(String(at(body, "generationConfig.thinkingConfig.thinkingLevel"))),
    says: "Thinking level MINIMAL is not supported for this model. Please retry with other thinking level.",
    source: thinkingDocs,
    violates: {
      model: "gemini-3.1-pro-preview",
      body: config({ thinkingConfig: { thinkingLevel: "MINIMAL" } }),
    },
  },
  {
    id: "level-minimal-on-newer",
    models: /gemini-3\.[7-9]-flash(?!-lite)/,
    when: ({ body }) =>
      /^minimal$/i.test(String(at(body, "generationConfig.thinkingConfig.thinkingLevel"))),
    says: "Thinking level is unsupported: THINKING_LEVEL_MINIMAL",
    source: "github.com/can1357/oh-my-pi/issues/10543, litellm-docs PR#1505 (2026-09-16)",
    violates: {
      model: "gemini-3.8-flash",
      body: config({ thinkingConfig: { thinkingLevel: "MINIMAL" } }),
    },
  },
  {
    id: "budget-off-on-pro",
    models: /gemini-2\.5-pro|gemini-3[.\d]*-pro/,
    when: ({ body }) => at(body, "generationConfig.thinkingConfig.thinkingBudget") === 0,
    says: "Budget 0 is invalid. This model only works in thinking mode.",
    source: thinkingDocs,
    violates: { model: "gemini-2.5-pro", body: config({ thinkingConfig: { thinkingBudget: 0 } }) },
  },
  {
    id: "budget-range",
    models: /gemini-2\.5-flash/,
    when: ({ body }) =>
      Number(at(body, "generationConfig.thinkingConfig.thinkingBudget") ?? 0) > 24_576,
    says: "The thinking budget 32768 is invalid. Please choose a value between 0 and 24576.",
    source: thinkingDocs,
    violates: {
      model: "gemini-2.5-flash",
      body: config({ thinkingConfig: { thinkingBudget: 32_768 } }),
    },
  },
  {
    id: "thinking-on-others",
    models: /gemini-(?:1|2\.0)/,
    when: isSet("generationConfig.thinkingConfig"),
    says: "Unable to submit request because Thinking is not supported for this model.",
    source: thinkingDocs,
    violates: {
      model: "gemini-2.0-flash",
      body: config({ thinkingConfig: { includeThoughts: true } }),
    },
  },
  ...(["frequencyPenalty", "presencePenalty"] as const).map((field) => ({
    id: `penalty-${field === "frequencyPenalty" ? "frequency" : "presence"}`,
    models: /gemini-(?:2\.5|3)/,
    when: isOther(`generationConfig.${field}`, 0),
    says: `Penalty is not enabled for this model: ${field}`,
    source: "github.com/BerriAI/litellm, llms/vertex_ai/gemini (2026-11)",
    violates: { model: "gemini-2.5-flash", body: config({ [field]: 0.5 }) },
  })),
  {
    id: "too-many-stops",
    when: ({ body }) => {
      const stops: unknown = at(body, "generationConfig.stopSequences");
      return Array.isArray(stops) && stops.length > 5;
    },
    says: "The number of stop sequences 6 exceeds the limit of 5.",
    source: reference,
    violates: {
      model: "gemini-2.5-flash",
      body: config({ stopSequences: ["a", "b", "c", "d", "e", "f"] }),
    },
  },
  {
    id: "seed-range",
    when: ({ body }) => Math.abs(Number(at(body, "generationConfig.seed") ?? 0)) > 2 ** 31 - 1,
    says: "Invalid value at 'generation_config.seed' (TYPE_INT32), 4294967296",
    source: reference,
    violates: { model: "gemini-2.5-flash", body: config({ seed: 2 ** 32 }) },
  },
  {
    id: "top-k-zero",
    when: ({ body }) => at(body, "generationConfig.topK") === 0,
    says: "Unable to submit request because it has a topK value of 0 but the supported range is from 1 (inclusive) to 65 (exclusive).",
    source: "cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference (2026-11)",
    violates: { model: "gemini-2.5-flash", body: config({ topK: 0 }) },
  },
  {
    id: "unknown-config",
    when: ({ body }) =>
      ["minP", "repetitionPenalty", "logitBias", "user"].some(
        (field) => at(body, `generationConfig.${field}`) !== undefined,
      ),
    says: `Invalid JSON payload received. Unknown name "minP" at 'generation_config': Cannot find field.`,
    source: reference,
    violates: { model: "gemini-2.5-flash", body: config({ minP: 0.1 }) },
  },
]);

const conversationRules = rulesOf({ vendor: "google", endpoint: "generate", body: envelope }, [
  {
    id: "no-contents",
    when: (request) => turnsOf(request).length === 0,
    says: "contents is not specified",
    source: reference,
    violates: {
      model: "gemini-2.5-flash",
      body: { contents: [], systemInstruction: { parts: [{ text: "Hi" }] } },
    },
  },
  {
    id: "model-turn-last",
    models: /gemini-3\.(?:[6-9]|5-flash-lite)/,
    when: (request) => turnsOf(request).at(-1)?.["role"] === "model",
    says: "Requests ending with a model turn are not supported.",
    source: "github.com/Zoo-Code-Org/Zoo-Code/issues/1052 (2026-07-22)",
    violates: {
      model: "gemini-3.8-flash",
      body: { contents: [user("Hi"), { role: "model", parts: [{ text: "So" }] }] },
    },
  },
  {
    id: "role",
    when: someTurn(({ role }) => !["user", "model", "function"].includes(String(role ?? "user"))),
    says: "Please use a valid role: user, model.",
    source: reference,
    violates: {
      model: "gemini-2.5-flash",
      body: { contents: [{ role: "assistant", parts: [{ text: "Hi" }] }] },
    },
  },
  {
    id: "empty-part",
    when: someBlock((part) => Object.keys(part).length === 0),
    says: "Unable to submit request because it must have a text parameter: contents.parts must not be empty.",
    source: reference,
    violates: { model: "gemini-2.5-flash", body: { contents: [{ role: "user", parts: [{}] }] } },
  },
  {
    id: "results-per-turn",
    when: someTurn(
      (turn, index, turns) =>
        index < turns.length - 1 &&
        callsOf(turn).length > 0 &&
        resultsOf(turns[index + 1]).length !== callsOf(turn).length,
    ),
    says: "Please ensure that the number of function response parts is equal to the number of function call parts of the...",
    source: "kosong#45, pydantic-ai PR#653, bifrost#1164, mlflow#25788 (2026-11-21)",
    violates: {
      model: "gemini-2.5-flash",
      body: { contents: [user("Weather?"), calling(), user("And?")], tools: [geminiTool()] },
    },
  },
  {
    id: "media-in-results",
    models: /gemini-[12]/,
    when: someTurn((turn) =>
      resultsOf(turn).some((result) => at(result, "functionResponse.parts") !== undefined),
    ),
    says: "Multimodal function response is not supported for this model.",
    source:
      "github.com/maximhq/bifrost/pull/4202 (2026-06-09), " +
      "github.com/agentjido/req_llm/pull/701 (2026-05-18)",
    violates: {
      model: "gemini-2.5-flash",
      body: {
        contents: [
          user("Weather?"),
          calling(),
          {
            role: "user",
            parts: [{ functionResponse: { name: "look_up", response: {}, parts: [picture] } }],
          },
        ],
        tools: [geminiTool()],
      },
    },
  },
  {
    id: "call-after-user",
    when: someTurn(
      (turn, index, turns) =>
        callsOf(turn).length > 0 && (index === 0 || turns[index - 1]?.["role"] === "model"),
    ),
    says: "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    source: "github.com/google-gemini/gemini-cli/issues, `function call turn` (2025-2026)",
    violates: {
      model: "gemini-2.5-flash",
      body: { contents: [calling(), answering], tools: [geminiTool()] },
    },
  },
  {
    id: "thought-signature",
    models: /gemini-3/,
    when: (request) => {
      const turns = turnsOf(request);
      const lastText = turns.findLastIndex(
        (turn) => turn["role"] === "user" && resultsOf(turn).length === 0,
      );
      return turns
        .slice(lastText + 1)
        .some((turn) =>
          callsOf(turn).some((part, index) => index === 0 && !part["thoughtSignature"]),
        );
    },
    says: "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.",
    source: "opencode#4832, claude-proxy#16 (2026-11-28)",
    violates: {
      model: "gemini-3-flash-preview",
      body: { contents: [user("Weather?"), calling(), answering], tools: [geminiTool()] },
    },
  },
  {
    id: "other-account",
    when: someBlock(({ thoughtSignature: seal }) => /^other/.test(String(seal))),
    says: "Corrupted thought signature.",
    source: "github.com/google-gemini/gemini-cli/issues/13467 (2025-11-20)",
    violates: {
      model: "gemini-3-flash-preview",
      body: {
        contents: [user("Weather?"), calling({ thoughtSignature: "other" }), answering],
        tools: [geminiTool()],
      },
    },
  },
  {
    id: "function-name",
    when: (request) =>
      declarationsOf(request).some(
        ({ name }) => !/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/.test(String(name)),
      ),
    says: "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores...",
    source: reference,
    violates: {
      model: "gemini-2.5-flash",
      body: askGemini({ tools: [geminiTool({ name: "9lives" })] }),
    },
  },
  {
    id: "duplicate-declaration",
    when: (request) => hasTwins(declarationsOf(request)),
    says: "Duplicate function declaration found: look_up",
    source: "github.com/rikkahub/rikkahub/issues/1311 (2026-06-12)",
    violates: {
      model: "gemini-3.1-pro-preview",
      body: askGemini({ tools: [geminiTool(), geminiTool()] }),
    },
  },
  {
    id: "parameters-subset",
    when: (request) =>
      declarationsOf(request).some(({ parameters }) =>
        schemasIn(parameters).some(
          (schema) =>
            schema["$schema"] !== undefined || schema["additionalProperties"] !== undefined,
        ),
      ),
    says: `Invalid JSON payload received. Unknown name "additionalProperties" at...`,
    source: "@google/genai 3.1 and Bedrock's reference (2026-11-21)",
    violates: {
      model: "gemini-2.5-flash",
      body: askGemini({
        tools: [geminiTool({ parametersJsonSchema: undefined, parameters: schemaOf({}) })],
      }),
    },
  },
  {
    id: "search-beside-functions",
    models: /gemini-(?:1|2)/,
    when: all(offersFunctions, searches),
    says: "Tool use with function calling is unsupported",
    source: "github.com/symfony/ai/issues/803 (2025-10-22)",
    violates: {
      model: "gemini-2.5-flash",
      body: askGemini({ tools: [geminiTool(), { googleSearch: {} }] }),
    },
  },
  {
    id: "search-unannounced",
    models: /gemini-[3-9]/,
    when: all(offersFunctions, searches, not(isSet("toolConfig.includeServerSideToolInvocations"))),
    says: "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.",
    source: "github.com/genkit-ai/genkit/issues/4970 (2026-03-20)",
    violates: {
      model: "gemini-3-flash-preview",
      body: askGemini({ tools: [geminiTool(), { googleSearch: {} }] }),
    },
  },
  {
    id: "auto-beside-search",
    models: /gemini-[3-9]/,
    when: all(offersFunctions, searches, (request) => modeOf(request) === "AUTO"),
    says: "Function calling mode AUTO is not supported with built-in tools.",
    source: "github.com/Pretend-to/mio-chat-backend/issues/30 (2026-05-26)",
    violates: {
      model: "gemini-3-flash-preview",
      body: askGemini({
        tools: [geminiTool(), { googleSearch: {} }],
        toolConfig: {
          includeServerSideToolInvocations: true,
          functionCallingConfig: { mode: "AUTO" },
        },
      }),
    },
  },
  {
    id: "announced-on-older",
    models: /gemini-(?:1|2)/,
    when: isSet("toolConfig.includeServerSideToolInvocations"),
    says: "Tool call context circulation is not enabled for models/gemini-2.5-flash",
    source: "github.com/egonSchiele/agency-lang/issues/495 (2026-07-10)",
    violates: {
      model: "gemini-2.5-flash",
      body: askGemini({
        tools: [geminiTool()],
        toolConfig: { includeServerSideToolInvocations: true },
      }),
    },
  },
  {
    id: "names-beside-auto",
    when: all(
      isSet("toolConfig.functionCallingConfig.allowedFunctionNames"),
      (request) => !["ANY", "VALIDATED"].includes(String(modeOf(request))),
    ),
    says: "Allowed function names should only be set when mode is ANY or VALIDATED.",
    source: reference,
    violates: {
      model: "gemini-2.5-flash",
      body: askGemini({
        tools: [geminiTool()],
        toolConfig: {
          functionCallingConfig: { mode: "AUTO", allowedFunctionNames: ["look_up"] },
        },
      }),
    },
  },
  {
    id: "config-without-functions",
    when: all(isSet("toolConfig.functionCallingConfig"), (request) => !offersFunctions(request)),
    says: "Function calling config is set without function_declarations.",
    source: reference,
    violates: {
      model: "gemini-2.5-flash",
      body: askGemini({ toolConfig: { functionCallingConfig: { mode: "AUTO" } } }),
    },
  },
  {
    id: "arguments-are-objects",
    when: someBlock(
      ({ functionCall }) =>
        functionCall !== undefined && typeof fieldsOf(functionCall)["args"] === "string",
    ),
    says: `Invalid value at 'contents[1].parts[0].function_call.args' (type.googleapis.com/google.protobuf.Struct), "{}"`,
    source: "@google/genai 3.1 and Bedrock's reference (2026-11-21)",
    violates: {
      model: "gemini-2.5-flash",
      body: {
        contents: [
          user("Weather?"),
          { role: "model", parts: [{ functionCall: { name: "look_up", args: "{}" } }] },
          answering,
        ],
        tools: [geminiTool()],
      },
    },
  },
]);

/** What Google AI Studio refuses. */
export const googleRules: readonly VendorRule[] = [...generationRules, ...conversationRules];
