import { all, at, callsOf, functionsOf, isAbove, isOther, isSet, someTurn } from "../reading.ts";
import { rulesOf, type VendorRequest, type VendorRule } from "../rule.ts";
import { ask, chatHistory, chatTool } from "../samples.ts";
import { moonshotError, moonshotSchemaRules } from "./moonshotai-schemas.ts";

/** Kimi K2.5 and later think by default, with fixed sampling. */
const fixed = /kimi-k(?:2\.[5-9]|[3-9])/;
const thinking = /kimi-k(?:2\.[5-9]|[3-9]|2-thinking)/;
const thinks = ({ body }: VendorRequest): boolean => at(body, "thinking.type") !== "disabled";

const kimi = "kimi-k2.5";
const fixedSource = "github.com/odysseus-dev/odysseus/issues/3959 (2026-06-11)";
const only = (name: string, value: number): string =>
  `invalid ${name}: only ${value} is allowed for this model`;

const rules = rulesOf({ vendor: "moonshotai", endpoint: "chat", body: moonshotError }, [
  {
    id: "temperature",
    models: fixed,
    when: all(thinks, isOther("temperature", 1)),
    says: only("temperature", 1),
    source: fixedSource,
    violates: { model: kimi, body: ask({ temperature: 0.7 }) },
  },
  {
    id: "top-p",
    models: fixed,
    when: isOther("top_p", 0.95),
    says: only("top_p", 0.95),
    source: "github.com/google-gemini/gemini-cli/pull/18977 (2026-02-13)",
    violates: { model: kimi, body: ask({ top_p: 0.5 }) },
  },
  ...(["presence_penalty", "frequency_penalty"] as const).map((field) => ({
    id: field.replace("_", "-"),
    models: fixed,
    when: isOther(field, 0),
    says: only(field, 0),
    source: "java.agentscope.io/v2/en/integration/model/kimi (2026-11)",
    violates: { model: kimi, body: ask({ [field]: 0.5 }) },
  })),
  {
    id: "n",
    models: fixed,
    when: isOther("n", 1),
    says: only("n", 1),
    source: "java.agentscope.io/v2/en/integration/model/kimi (2026-11)",
    violates: { model: kimi, body: ask({ n: 2 }) },
  },
  {
    id: "calls-without-reasoning",
    models: thinking,
    when: all(
      thinks,
      someTurn((turn) => callsOf(turn).length > 0 && typeof turn["reasoning_content"] !== "string"),
    ),
    says: "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    source: "github.com/continuedev/continue/issues/11711 (2026-03-22)",
    violates: { model: kimi, body: chatHistory() },
  },
  {
    id: "thinking-off-on-thinkers",
    models: /kimi-k2\.[7-9]|kimi-k2-thinking/,
    when: ({ body }) => at(body, "thinking.type") === "disabled",
    says: "invalid thinking: only type=enabled is allowed for this model",
    source: "github.com/theopenco/llmgateway/pull/3065 (2026-07-14)",
    violates: { model: "kimi-k2.7-code", body: ask({ thinking: { type: "disabled" } }) },
  },
  {
    id: "thinking-and-effort",
    when: all(isSet("thinking"), isSet("reasoning_effort")),
    says: "cannot specify both 'thinking' and 'reasoning_effort'",
    source: "github.com/HKUDS/nanobot/issues/3939 (2026-05-20)",
    violates: {
      model: kimi,
      body: ask({ thinking: { type: "enabled" }, reasoning_effort: "high" }),
    },
  },
  {
    id: "choice-required",
    models: thinking,
    when: all(thinks, ({ body }) => body["tool_choice"] === "required"),
    says: "tool_choice 'required' is incompatible with thinking enabled",
    source: "platform.moonshot.ai/docs/guide/kimi-k2-5-quickstart (2026-11)",
    violates: { model: kimi, body: ask({ tools: [chatTool()], tool_choice: "required" }) },
  },
  {
    id: "choice-function",
    models: thinking,
    when: all(thinks, ({ body }) => at(body, "tool_choice.type") === "function"),
    says: "tool_choice 'specified' is incompatible with thinking enabled",
    source: "platform.moonshot.ai/docs/guide/kimi-k2-5-quickstart (2026-11)",
    violates: {
      model: kimi,
      body: ask({
        tools: [chatTool()],
        tool_choice: { type: "function", function: { name: "look_up" } },
      }),
    },
  },
  {
    id: "temperature-range",
    models: /kimi-k2(?!\.[5-9])|moonshot/,
    when: isAbove("temperature", 1),
    says: "invalid temperature: must be in range [0, 1]",
    source: "platform.kimi.ai/docs/api/models-overview (2026-11)",
    violates: { model: "kimi-k2-0905-preview", body: ask({ temperature: 1.5 }) },
  },
  {
    id: "empty-assistant",
    when: someTurn(
      (turn) =>
        turn["role"] === "assistant" &&
        callsOf(turn).length === 0 &&
        (turn["content"] ?? "") === "",
    ),
    says: "Invalid request: the message at position 1 with role 'assistant' must not be empty",
    source: "recalled",
    violates: {
      model: "kimi-k2-0905-preview",
      body: {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "" },
          { role: "user", content: "And?" },
        ],
      },
    },
  },
  {
    id: "tool-name",
    when: (request) =>
      functionsOf(request).some(({ name }) => !/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/.test(String(name))),
    says: "Invalid request: function name is invalid, must start with a letter and can contain letters, numbers,...",
    source:
      "github.com/MoonshotAI/kimi-cli/issues/1773 (2026-04-07), MoonshotAI/kimi-cli/issues/2531 (2026-07-22)",
    violates: { model: kimi, body: ask({ tools: [chatTool({ name: "9lives" })] }) },
  },
]);

/** What Moonshot refuses. */
export const moonshotaiRules: readonly VendorRule[] = [...rules, ...moonshotSchemaRules];
