import { all, at, functionsOf, isAbove, isSet, offersFunctions } from "../reading.ts";
import { type Fields, rulesOf, type VendorRule } from "../rule.ts";
import { ask, chatFormat, chatTool, schemaOf } from "../samples.ts";

const envelope = ({ message }: { message: string }): Fields => ({ id: "strict", message });

const model = "command-a-03-2025";
const docs = "docs.cohere.com/docs/compatibility-api, unsupported parameters (2026-11)";

const unsupported: readonly (readonly [field: string, value: unknown])[] = [
  ["store", true],
  ["metadata", { a: "b" }],
  ["logit_bias", { "1": 1 }],
  ["top_logprobs", 2],
  ["n", 2],
  ["modalities", ["text"]],
  ["prediction", { type: "content", content: "So." }],
  ["service_tier", "auto"],
  ["parallel_tool_calls", false],
  ["top_k", 5],
];

/** What Cohere's compatibility API refuses. */
export const cohereRules: readonly VendorRule[] = rulesOf(
  { vendor: "cohere", endpoint: "chat", status: 422, body: envelope },
  [
    ...unsupported.map(([field, value]) => ({
      id: field.replaceAll("_", "-"),
      when: isSet(field),
      says: `unknown field: parameter '${field}' is not a valid field`,
      source: docs,
      violates: {
        model,
        body: ask({ [field]: value, ...(field.startsWith("parallel") && { tools: [chatTool()] }) }),
      },
    })),
    {
      id: "strict",
      when: (request) => functionsOf(request).some(({ strict }) => strict !== undefined),
      says: "unknown field: parameter 'strict' is not a valid field. For proper usage, please refer to...",
      source: "github.com/OpenRouterTeam/openrouter-examples/issues/71 (2026-03-23)",
      violates: { model, body: ask({ tools: [chatTool({ strict: true })] }) },
    },
    {
      id: "choice-function",
      status: 400,
      when: ({ body }) => at(body, "tool_choice.type") === "function",
      says: "invalid request: tool_choice must be one of NONE or REQUIRED",
      source: "github.com/maximhq/bifrost/pull/55 (2025-06-04)",
      violates: {
        model,
        body: ask({
          tools: [chatTool()],
          tool_choice: { type: "function", function: { name: "look_up" } },
        }),
      },
    },
    {
      id: "format-beside-functions",
      status: 400,
      when: all(offersFunctions, ({ body }) =>
        ["json_object", "json_schema"].includes(String(at(body, "response_format.type"))),
      ),
      says: "invalid request: cannot specify response_format with tools",
      source: "docs.cohere.com/docs/structured-outputs (2026-11)",
      violates: {
        model,
        body: ask({ tools: [chatTool()], ...chatFormat(schemaOf({ type: "string" })) }),
      },
    },
    {
      id: "temperature-range",
      status: 400,
      when: isAbove("temperature", 1),
      says: "invalid request: temperature must be between 0 and 1.0 inclusive.",
      source: "docs.cohere.com/reference/chat (2026-11)",
      violates: { model, body: ask({ temperature: 1.5 }) },
    },
  ],
);
