import { at, blocksOf, listOf, turnsOf } from "../reading.ts";
import { type Fields, rulesOf, type VendorRequest } from "../rule.ts";
import { askClaude, claudeHistory } from "../samples.ts";

/** Returns Anthropic's form of a refusal. */
export const anthropicError = ({ message }: { message: string }): Fields => ({
  type: "error",
  error: { type: "invalid_request_error", message },
  request_id: "req_strict",
});

/** The beginning of signatures that another vendor of Messages, such as Moonshot, has made. */
const otherVendor = "othervendor";

/** Returns the place of the first thinking that another vendor signed; undefined without any. */
function othersPlace(request: VendorRequest): string | undefined {
  const isOthers = ({ type, signature }: Fields): boolean =>
    type === "thinking" && String(signature).startsWith(otherVendor);
  const [place] = turnsOf(request).flatMap((turn, index) => {
    const position = blocksOf(turn).findIndex(isOthers);
    return position < 0 ? [] : [`messages.${index}.content.${position}`];
  });
  return place;
}

/** The beginning of signatures that name the place of their block in its turn. */
const placed = /^place(\d+)/;

/** Returns the place of the first thinking of the last turn that stands where it was not written. */
function movedPlace(request: VendorRequest): string | undefined {
  const turns = turnsOf(request);
  const index = turns.findLastIndex(({ role }) => role === "assistant");
  const position = blocksOf(turns[index] ?? {}).findIndex(({ signature }, at) => {
    const [, place] = placed.exec(String(signature)) ?? [];
    return place !== undefined && Number(place) !== at;
  });
  return position < 0 ? undefined : `messages.${index}.content.${position}`;
}

/** What Anthropic refuses about thoughts of earlier turns, and about thinking that is off. */
export const thoughtRules = rulesOf(
  { vendor: "anthropic", endpoint: "messages", body: anthropicError },
  [
    {
      id: "other-vendors-signature",
      when: (request) => othersPlace(request) !== undefined,
      says: (request) => `${othersPlace(request)}: Invalid \`signature\` in \`thinking\` block`,
      source:
        "github.com/tombii/better-ccflare/issues/52, NousResearch/hermes-agent/issues/24401 (2026-05-12)",
      violates: {
        model: "claude-sonnet-4-5",
        body: {
          ...claudeHistory([{ type: "thinking", thinking: "Hm.", signature: `${otherVendor}1` }]),
          thinking: { type: "enabled", budget_tokens: 1_024 },
        },
      },
    },
    {
      id: "moved-thought",
      when: (request) => movedPlace(request) !== undefined,
      says: (request) =>
        `${movedPlace(request)}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant ` +
        "message cannot be modified. These blocks must remain as they were in the original response.",
      source:
        "github.com/anthropics/claude-code/issues/63277, NousResearch/hermes-agent/issues/35975 (2026-05-31)",
      violates: {
        model: "claude-opus-4-7",
        body: claudeHistory([{ type: "thinking", thinking: "Hm.", signature: "place2" }]),
      },
    },
    {
      id: "clearing-without-thinking",
      when: ({ body }) =>
        listOf(at(body, "context_management.edits")).some(({ type }) =>
          String(type).startsWith("clear_thinking"),
        ) && !["enabled", "adaptive"].includes(String(at(body, "thinking.type"))),
      says: "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive",
      source: "claude-code#11971, github.com/router-for-me/CLIProxyAPI/issues/4957 (2026-08-14)",
      violates: {
        model: "claude-sonnet-4-5",
        body: askClaude({ context_management: { edits: [{ type: "clear_thinking_20251015" }] } }),
      },
    },
    {
      id: "thinking-off-with-much-effort",
      models: /claude-(?:opus-5(?![-.]\d)|haiku-5-5)/,
      when: ({ body }) =>
        at(body, "thinking.type") === "disabled" &&
        ["xhigh", "max"].includes(String(at(body, "output_config.effort"))),
      says: "`thinking.type: disabled` is only supported with `output_config.effort` of high or lower.",
      source: "platform.claude.com/docs/en/models/opus-5/migration-guide (2026-11)",
      violates: {
        model: "claude-opus-5",
        body: askClaude({ thinking: { type: "disabled" }, output_config: { effort: "xhigh" } }),
      },
    },
  ],
);
