import { isOther, isSet } from "../reading.ts";
import { type Fields, rulesOf, type VendorRule } from "../rule.ts";
import { ask, chatTool } from "../samples.ts";

const envelope = ({ message }: { message: string }): Fields => ({
  code: "Client specified an invalid argument",
  error: message,
});

const reasoning = /grok-(?:3-mini|4(?!.*non-reasoning)|[5-9]|build)/;
const multiAgent = /multi-agent/;
const withoutEffort = /grok-4\.20-0309|grok-build/;

/** What xAI refuses. */
export const xaiRules: readonly VendorRule[] = [
  ...rulesOf({ vendor: "xai", endpoint: "chat", body: envelope }, [
    ...(["presence_penalty", "frequency_penalty"] as const).map((field) => ({
      id: field.replace("_", "-"),
      models: /grok-(?:3|4|5|build)/,
      when: isSet(field),
      says: `Model does not support parameter ${field === "presence_penalty" ? "presencePenalty" : "frequencyPenalty"}.`,
      source: "github.com/miaoxworld/NativeTavern/issues/83 (2026-09-15)",
      violates: { model: "grok-4.3", body: ask({ [field]: 0.5 }) },
    })),
    {
      id: "penalty-of-zero",
      models: /grok-(?:3|4|5|build)/,
      when: isSet("presence_penalty"),
      says: "Model does not support parameter presencePenalty.",
      source: "github.com/miaoxworld/NativeTavern/issues/83 (2026-09-15)",
      violates: { model: "grok-4.20-0309-non-reasoning", body: ask({ presence_penalty: 0 }) },
    },
    {
      id: "stop",
      models: reasoning,
      when: isSet("stop"),
      says: "Argument not supported on this model: stop",
      source: "docs.x.ai/developers/model-capabilities/text/reasoning (2026-08-10)",
      violates: { model: "grok-4.3", body: ask({ stop: ["END"] }) },
    },
    {
      id: "effort-on-fixed",
      models: withoutEffort,
      when: isSet("reasoning_effort"),
      says: "Argument not supported on this model: reasoningEffort",
      source: "github.com/lobehub/lobehub/pull/8379 (2025-07-10)",
      violates: {
        model: "grok-4.20-0309-reasoning",
        body: ask({ reasoning_effort: "high" }),
      },
    },
    {
      id: "effort-values",
      models: /grok-4\.3/,
      when: isOther("reasoning_effort", "none", "low", "medium", "high"),
      says: "Invalid reasoning effort. Must be one of: none, low, medium, high",
      source: "models.dev, xai/grok-4.3 (2026-07-02)",
      violates: { model: "grok-4.3", body: ask({ reasoning_effort: "xhigh" }) },
    },
    {
      id: "responses-only",
      models: multiAgent,
      when: () => true,
      says: "Multi-agent models are only available on the Responses API.",
      source: "docs.x.ai/developers/model-capabilities/text/multi-agent (2026-11)",
      violates: { model: "grok-4.20-multi-agent-0309", body: ask() },
    },
  ]),
  ...rulesOf({ vendor: "xai", endpoint: "responses", body: envelope }, [
    {
      id: "responses-summary",
      when: ({ body }) =>
        (body["reasoning"] as { summary?: unknown } | null | undefined)?.summary !== undefined,
      says: "Argument not supported: reasoning.summary",
      source: "github.com/can1357/oh-my-pi/pull/7454 (2026-08-10)",
      violates: {
        model: "grok-4.20-multi-agent-0309",
        body: {
          input: [{ role: "user", content: "Hi" }],
          reasoning: { effort: "high", summary: "auto" },
        },
      },
    },
    {
      id: "responses-functions",
      models: multiAgent,
      when: ({ body }) => JSON.stringify(body["tools"] ?? []).includes('"function"'),
      says: "Client-side tools are not supported for multi-agent models.",
      source: "docs.x.ai/developers/model-capabilities/text/multi-agent (2026-11)",
      violates: {
        model: "grok-4.20-multi-agent-0309",
        body: {
          input: [{ role: "user", content: "Hi" }],
          tools: [{ type: "function", name: "look_up", parameters: chatTool() }],
        },
      },
    },
  ]),
];
