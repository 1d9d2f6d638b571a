import {
  all,
  at,
  blocksOf,
  fieldsOf,
  hasOddMembers,
  isAbove,
  isOther,
  isSet,
  listOf,
  schemasIn,
  someBlock,
  someTurn,
  turnsOf,
} from "../reading.ts";
import { type Fields, rulesOf, type VendorRequest, type VendorRule } from "../rule.ts";
import { askConverse, converseHistory, converseTool, oddMembers, schemaOf } from "../samples.ts";

const envelope = ({ message }: { message: string }): Fields => ({ message });

const claude = /anthropic\.claude/;
const nova = "us.amazon.nova-pro-v1:0";
const llama = "us.meta.llama3-3-70b-instruct-v1:0";
const pixtral = "us.mistral.pixtral-large-2502-v1:0";
const sonnet = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

const thinkingOf = ({ body }: VendorRequest): Fields =>
  fieldsOf(at(body, "additionalModelRequestFields.thinking"));
const forced = ({ body }: VendorRequest): boolean =>
  isSet("toolConfig.toolChoice.any")({ body } as VendorRequest) ||
  isSet("toolConfig.toolChoice.tool")({ body } as VendorRequest);
const specsOf = ({ body }: VendorRequest): Fields[] =>
  listOf(at(body, "toolConfig.tools")).map(({ toolSpec }) => fieldsOf(toolSpec));
const usesOf = (turn: Fields | undefined): Fields[] =>
  blocksOf(turn ?? {}).flatMap(({ toolUse }) => (toolUse === undefined ? [] : [fieldsOf(toolUse)]));
const resultsOf = (turn: Fields | undefined): Fields[] =>
  blocksOf(turn ?? {}).flatMap(({ toolResult }) =>
    toolResult === undefined ? [] : [fieldsOf(toolResult)],
  );
const isPoint = ({ cachePoint }: Fields): boolean => cachePoint !== undefined;
const hasTexts = (turn: Fields): boolean =>
  blocksOf(turn).some(({ text }) => typeof text === "string");
const heldSchemas = (request: VendorRequest): Fields[] => {
  const format: unknown = at(request.body, "outputConfig.textFormat.structure.jsonSchema.schema");
  const tools = specsOf(request).filter(({ strict }) => strict === true);
  return [
    ...(typeof format === "string" ? schemasIn(JSON.parse(format)) : []),
    ...tools.flatMap((tool) => schemasIn(at(tool, "inputSchema.json"))),
  ];
};

const reference =
  "docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html (2026-11)";

/** What Bedrock's Converse refuses. */
export const amazonBedrockRules: readonly VendorRule[] = rulesOf(
  { vendor: "amazon-bedrock", endpoint: "converse", body: envelope },
  [
    {
      id: "history-without-tools",
      when: all(
        someBlock(({ toolUse, toolResult }) => (toolUse ?? toolResult) !== undefined),
        (request) => specsOf(request).length === 0,
      ),
      says: "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
      source: "@google/genai 3.1 and Bedrock's reference (2026-11-21)",
      violates: { model: nova, body: { ...converseHistory(), toolConfig: undefined } },
    },
    {
      id: "calls-without-results",
      when: someTurn((turn, index, turns) =>
        usesOf(turn).some(
          ({ toolUseId }) =>
            !resultsOf(turns[index + 1]).some((result) => result["toolUseId"] === toolUseId),
        ),
      ),
      says: "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1",
      source: "kosong#45, pydantic-ai PR#653, bifrost#1164, mlflow#25788 (2026-11-21)",
      violates: {
        model: nova,
        body: {
          ...converseHistory(),
          messages: (converseHistory()["messages"] as Fields[]).slice(0, 2),
        },
      },
    },
    {
      id: "texts-beside-results",
      models: /llama|mistral|cohere/,
      when: someTurn((turn) => resultsOf(turn).length > 0 && hasTexts(turn)),
      says: "messages.2.content: Conversation blocks and tool result blocks cannot be provided in the same turn.",
      source: "github.com/strands-agents/harness-sdk/issues/1223 (2025-11-21)",
      violates: { model: llama, body: converseHistory("tooluse_1", [{ text: "And?" }]) },
    },
    {
      id: "texts-beside-calls",
      models: /llama|mistral|cohere/,
      when: someTurn((turn) => usesOf(turn).length > 0 && hasTexts(turn)),
      says: "messages.1.content: Conversation blocks and tool use blocks cannot be provided in the same turn.",
      source: "github.com/quarkiverse/quarkus-langchain4j/issues/1983 (2025-11-28)",
      violates: { model: llama, body: converseHistory("tooluse_1", [], [{ text: "Wait." }]) },
    },
    {
      id: "result-status",
      models: /llama|mistral|cohere/,
      when: someTurn((turn) => resultsOf(turn).some(({ status }) => status !== undefined)),
      says: "This model doesn't support the status field in the toolResult block. Remove status and try again.",
      source:
        "docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultBlock.html (2026-11)",
      violates: { model: llama, body: converseHistory("tooluse_1", [], [], { status: "error" }) },
    },
    {
      id: "image-in-a-result",
      models: /^(?!.*(?:claude|nova|llama4))/,
      when: someTurn((turn) =>
        resultsOf(turn).some(({ content }) =>
          listOf(content).some(({ image }) => image !== undefined),
        ),
      ),
      says: "This model doesn't support the image field for user messages. Remove image and try again.",
      source:
        "github.com/anomalyco/opencode/issues/49443, anomalyco/opencode/pull/50272 (2026-09-21)",
      violates: {
        model: pixtral,
        body: converseHistory("tooluse_1", [], [], {
          content: [{ image: { format: "png", source: { bytes: "iVBO" } } }],
        }),
      },
    },
    {
      id: "call-id",
      when: someTurn((turn) =>
        usesOf(turn).some(({ toolUseId }) => !/^[a-zA-Z0-9_-]{1,64}$/.test(String(toolUseId))),
      ),
      says: "Value at 'messages.2.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint: Member must...",
      source: reference,
      violates: { model: nova, body: converseHistory("functions.look_up:0") },
    },
    {
      id: "call-ids-twice",
      when: someTurn(
        (turn) =>
          new Set(usesOf(turn).map(({ toolUseId }) => toolUseId)).size < usesOf(turn).length,
      ),
      says: "The toolUse blocks at messages.1.content contain duplicate Ids: tooluse_1",
      source:
        "github.com/BerriAI/litellm/pull/20049, double16/Cyber-AutoAgent-ng/issues/27 (2026-03-06)",
      violates: {
        model: nova,
        body: converseHistory(
          "tooluse_1",
          [],
          [{ toolUse: { toolUseId: "tooluse_1", name: "look_up", input: {} } }],
        ),
      },
    },
    {
      id: "tool-name",
      when: (request) =>
        specsOf(request).some(({ name }) => !/^[a-zA-Z0-9_-]{1,64}$/.test(String(name))),
      says: "Value at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint: Member must have length less...",
      source: reference,
      violates: {
        model: nova,
        body: askConverse({ toolConfig: { tools: [converseTool({ name: "l".repeat(65) })] } }),
      },
    },
    {
      id: "member-name",
      when: (request) =>
        specsOf(request).some((tool) => hasOddMembers(at(tool, "inputSchema.json"))),
      says: "The model returned the following errors: tools.0.custom.input_schema.properties: Property keys should match...",
      source:
        "github.com/aws-solutions-library-samples/" +
        "accelerated-intelligent-document-processing-on-aws/issues/709 (2026-08-31)",
      violates: {
        model: sonnet,
        body: askConverse({
          toolConfig: { tools: [converseTool({ inputSchema: { json: oddMembers } })] },
        }),
      },
    },
    {
      id: "empty-description",
      when: (request) => specsOf(request).some(({ description }) => description === ""),
      says: "Value at 'toolConfig.tools.1.member.toolSpec.description' failed to satisfy constraint: Member must have length...",
      source: reference,
      violates: {
        model: nova,
        body: askConverse({ toolConfig: { tools: [converseTool({ description: "" })] } }),
      },
    },
    {
      id: "schema-type",
      when: (request) =>
        specsOf(request).some((tool) => at(tool, "inputSchema.json.type") !== "object"),
      says: "The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.",
      source: reference,
      violates: {
        model: nova,
        body: askConverse({ toolConfig: { tools: [converseTool({ inputSchema: { json: {} } })] } }),
      },
    },
    {
      id: "blank-text",
      when: someBlock(({ text }) => typeof text === "string" && text.trim() === ""),
      says: "The text field in the ContentBlock object at messages.0.content.0 is blank. Add text to the text field, and try again.",
      source: "github.com/sst/opencode, provider/transform.ts (2026-11)",
      violates: {
        model: nova,
        body: askConverse({ messages: [{ role: "user", content: [{ text: " " }] }] }),
      },
    },
    {
      id: "first-turn",
      when: (request) => turnsOf(request)[0]?.["role"] !== "user",
      says: "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
      source: reference,
      violates: {
        model: nova,
        body: askConverse({ messages: [{ role: "assistant", content: [{ text: "Hi" }] }] }),
      },
    },
    {
      id: "alternating-turns",
      when: someTurn(
        (turn, index, turns) => index > 0 && turn["role"] === turns[index - 1]?.["role"],
      ),
      says: "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between...",
      source: reference,
      violates: {
        model: nova,
        body: askConverse({
          messages: [
            { role: "user", content: [{ text: "Hi" }] },
            { role: "user", content: [{ text: "there" }] },
          ],
        }),
      },
    },
    {
      id: "temperature-range",
      when: isAbove("inferenceConfig.temperature", 1),
      says: "Value '1.5' at 'inferenceConfig.temperature' failed to satisfy constraint: Member must have value less than or equal to 1",
      source: reference,
      violates: { model: nova, body: askConverse({ inferenceConfig: { temperature: 1.5 } }) },
    },
    {
      id: "temperature-and-top-p",
      models: /claude-(?:opus-4-1|(?:opus|sonnet|haiku)-4-[5-9])/,
      when: all(isSet("inferenceConfig.temperature"), isSet("inferenceConfig.topP")),
      says: "The model returned the following errors: `temperature` and `top_p` cannot both be specified for this model....",
      source: "github.com/mem0ai/mem0/pull/4147 (2026-02-26)",
      violates: {
        model: sonnet,
        body: askConverse({ inferenceConfig: { temperature: 0.5, topP: 0.5 } }),
      },
    },
    {
      id: "sampling-while-thinking",
      models: claude,
      when: all(
        (request) => thinkingOf(request)["type"] === "enabled",
        isOther("inferenceConfig.temperature", 1),
      ),
      says: "The model returned the following errors: `temperature` may only be set to 1 when thinking is enabled.",
      source: "github.com/workglow-dev/libs/pull/746 (2026-08-13)",
      violates: {
        model: sonnet,
        body: askConverse({
          inferenceConfig: { temperature: 0, maxTokens: 4_096 },
          additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 1_024 } },
        }),
      },
    },
    {
      id: "budget-above-cap",
      models: claude,
      when: (request) =>
        Number(thinkingOf(request)["budget_tokens"] ?? 0) >=
        Number(at(request.body, "inferenceConfig.maxTokens") ?? Number.POSITIVE_INFINITY),
      says: "The model returned the following errors: `max_tokens` must be greater than `thinking.budget_tokens`.",
      source: "agentgateway PR#3518, litellm PR#31364 (2026-11-21)",
      violates: {
        model: sonnet,
        body: askConverse({
          inferenceConfig: { maxTokens: 1_024 },
          additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 1_024 } },
        }),
      },
    },
    {
      id: "forced-tool-while-thinking",
      models: claude,
      when: all(forced, (request) => thinkingOf(request)["type"] === "enabled"),
      says: "The model returned the following errors: Thinking may not be enabled when tool_choice forces tool use.",
      source: "github.com/strands-agents/harness-sdk/pull/1495 (2026-01-15)",
      violates: {
        model: sonnet,
        body: askConverse({
          inferenceConfig: { maxTokens: 4_096 },
          additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 1_024 } },
          toolConfig: { tools: [converseTool()], toolChoice: { any: {} } },
        }),
      },
    },
    {
      id: "choice-any",
      models: /meta\.llama|deepseek|ai21\.|cohere\.command|writer\./,
      when: isSet("toolConfig.toolChoice.any"),
      says: "This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again.",
      source: "github.com/strands-agents/harness-sdk/issues/1241 (2025-11)",
      violates: {
        model: llama,
        body: askConverse({ toolConfig: { tools: [converseTool()], toolChoice: { any: {} } } }),
      },
    },
    {
      id: "choice-tool",
      models: /meta\.llama|deepseek|ai21\.|cohere\.command|writer\.|mistral/,
      when: isSet("toolConfig.toolChoice.tool"),
      says: "This model doesn't support the toolConfig.toolChoice.tool field. Remove toolConfig.toolChoice.tool and try again.",
      source:
        "docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolChoice.html (2026-11)",
      violates: {
        model: llama,
        body: askConverse({
          toolConfig: { tools: [converseTool()], toolChoice: { tool: { name: "look_up" } } },
        }),
      },
    },
    {
      id: "strict-without-support",
      models: /amazon\.nova|meta\.llama/,
      when: (request) => specsOf(request).some(({ strict }) => strict === true),
      says: "This model doesn't support the toolSpec.strict field.",
      source: "docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html (2026-11)",
      violates: {
        model: nova,
        body: askConverse({ toolConfig: { tools: [converseTool({ strict: true })] } }),
      },
    },
    {
      id: "schema-bounds",
      models: claude,
      when: (request) =>
        heldSchemas(request).some((schema) =>
          ["minimum", "maximum", "minLength", "maxLength", "maxItems", "oneOf"].some(
            (keyword) => schema[keyword] !== undefined,
          ),
        ),
      says: "The model returned the following errors: For 'integer' type, property 'minimum' is not supported",
      source: "docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html (2026-11)",
      violates: {
        model: sonnet,
        body: askConverse({
          outputConfig: {
            textFormat: {
              type: "json_schema",
              structure: {
                jsonSchema: {
                  name: "answer",
                  schema: JSON.stringify(schemaOf({ type: "integer", minimum: 1 })),
                },
              },
            },
          },
        }),
      },
    },
    {
      id: "high-effort-with-cap",
      models: /nova-2/,
      when: all(
        ({ body }) =>
          at(body, "additionalModelRequestFields.reasoningConfig.maxReasoningEffort") === "high",
        ({ body }) =>
          ["maxTokens", "temperature", "topP"].some(
            (field) => at(body, `inferenceConfig.${field}`) !== undefined,
          ),
      ),
      says: "maxTokens, temperature and topP cannot be set when maxReasoningEffort is high.",
      source: "docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html (2026-11)",
      violates: {
        model: "us.amazon.nova-2-lite-v1:0",
        body: askConverse({
          inferenceConfig: { maxTokens: 900 },
          additionalModelRequestFields: {
            reasoningConfig: { type: "enabled", maxReasoningEffort: "high" },
          },
        }),
      },
    },
    {
      id: "cache-point-in-tools",
      models: /nova/,
      when: ({ body }) => listOf(at(body, "toolConfig.tools")).some(isPoint),
      says: "Malformed input request: #/toolConfig/tools/1: extraneous key [cachePoint] is not permitted",
      source: "github.com/NousResearch/hermes-agent/issues/97281 (2026-08-28)",
      violates: {
        model: nova,
        body: askConverse({
          toolConfig: { tools: [converseTool(), { cachePoint: { type: "default" } }] },
        }),
      },
    },
    {
      id: "cache-point-behind-result",
      models: /nova/,
      when: someTurn((turn) =>
        blocksOf(turn).some(
          (block, index, blocks) =>
            isPoint(block) && blocks[index - 1]?.["toolResult"] !== undefined,
        ),
      ),
      says: "Malformed input request: a cachePoint may not follow a toolResult.",
      source: "github.com/aws-samples/bedrock-engineer/pull/71 (2025-04-17)",
      violates: {
        model: nova,
        body: converseHistory("tooluse_1", [{ cachePoint: { type: "default" } }]),
      },
    },
    {
      id: "cache-point-without-support",
      models: /meta\.llama|mistral|cohere\.command/,
      when: ({ body }) => JSON.stringify(body).includes('"cachePoint"'),
      says: "You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information.",
      source: "docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html (2026-11)",
      violates: {
        model: llama,
        body: askConverse({
          system: [{ text: "Be brief." }, { cachePoint: { type: "default" } }],
        }),
      },
    },
  ],
);
