import {
  blocksOf,
  hasForms,
  hasOddMembers,
  hasTwins,
  isOfOlderDraft,
  listOf,
  someBlock,
  turnsOf,
} from "../reading.ts";
import { rulesOf } from "../rule.ts";
import {
  askClaude,
  claudeHistory,
  claudeTool,
  eitherOf,
  oddMembers,
  olderSchema,
} from "../samples.ts";
import { anthropicError } from "./anthropic-thoughts.ts";

/** What Anthropic refuses about the definitions of tools. */
export const toolRules = rulesOf(
  { vendor: "anthropic", endpoint: "messages", body: anthropicError },
  [
    {
      id: "tool-name",
      when: ({ body }) =>
        listOf(body["tools"]).some(
          ({ type, name }) =>
            (type ?? "custom") === "custom" && !/^[a-zA-Z0-9_-]{1,128}$/.test(String(name)),
        ),
      says: "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
      source: "@anthropic-ai/sdk 1.11, resources/messages (2026-11-21)",
      violates: {
        model: "claude-sonnet-4-5",
        body: askClaude({ tools: [claudeTool({ name: "look.up" })] }),
      },
    },
    {
      id: "member-name",
      when: ({ body }) => listOf(body["tools"]).some((tool) => hasOddMembers(tool["input_schema"])),
      says: "tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
      source:
        "github.com/decocms/studio/pull/6874 (2026-09-02), " +
        "github.com/beautyfree/appstore-connect-mcp/issues/2 (2026-04-13)",
      violates: {
        model: "claude-sonnet-4-5",
        body: askClaude({ tools: [claudeTool({ input_schema: oddMembers })] }),
      },
    },
    {
      id: "older-schema",
      when: ({ body }) =>
        listOf(body["tools"]).some((tool) => isOfOlderDraft(tool["input_schema"])),
      says: "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
      source:
        "github.com/Dokploy/mcp/issues/74 (2026-08-16), " +
        "github.com/hyperdxio/hyperdx/pull/2925 (2026-08-17)",
      violates: {
        model: "claude-sonnet-4-5",
        body: askClaude({ tools: [claudeTool({ input_schema: olderSchema })] }),
      },
    },
    {
      id: "tool-names-twice",
      when: ({ body }) => hasTwins(listOf(body["tools"])),
      says: "tools: Tool names must be unique.",
      source: "github.com/anthropics/claude-code/issues/10687 (2025-10-31)",
      violates: {
        model: "claude-sonnet-4-5",
        body: askClaude({ tools: [claudeTool(), claudeTool()] }),
      },
    },
    {
      id: "top-level-forms",
      when: ({ body }) => listOf(body["tools"]).some((tool) => hasForms(tool["input_schema"])),
      says: "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
      source:
        "github.com/anthropics/claude-code/issues/44788 (2026-04-07), " +
        "github.com/windoze95/cantinarr/issues/497 (2026-08-23)",
      violates: {
        model: "claude-sonnet-4-5",
        body: askClaude({ tools: [claudeTool({ input_schema: eitherOf })] }),
      },
    },
    {
      id: "call-ids-twice",
      when: (request) => {
        const calls = turnsOf(request)
          .flatMap(blocksOf)
          .filter(({ type }) => type === "tool_use");
        return new Set(calls.map(({ id }) => id)).size < calls.length;
      },
      says: "messages.3.content.0: `tool_use` ids must be unique",
      source:
        "github.com/NVIDIA-NeMo/Switchyard/issues/502, BerriAI/litellm/issues/23510 (2026-09-02)",
      violates: {
        model: "claude-sonnet-4-5",
        body: {
          ...claudeHistory(),
          messages: [1, 2].flatMap(() => listOf(claudeHistory()["messages"])),
        },
      },
    },
    {
      id: "search-of-both-domains",
      when: ({ body }) =>
        listOf(body["tools"]).some(
          ({ allowed_domains: allowed, blocked_domains: blocked }) => allowed && blocked,
        ),
      says: "tools.0.web_search_20250305: Only one of allowed_domains or blocked_domains may be provided",
      source: "@anthropic-ai/sdk 1.11, resources/messages `WebSearchTool20250305` (2026-11-21)",
      violates: {
        model: "claude-sonnet-4-5",
        body: askClaude({
          tools: [
            {
              type: "web_search_20250305",
              name: "web_search",
              allowed_domains: ["a.test"],
              blocked_domains: ["b.test"],
            },
          ],
        }),
      },
    },
    {
      id: "search-id",
      when: someBlock(
        ({ type, id }) =>
          type === "server_tool_use" && !/^srvtoolu_[a-zA-Z0-9_]+$/.test(String(id)),
      ),
      says: "messages.1.content.0.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
      source:
        "github.com/ding113/claude-code-hub/issues/470 (2025-12-27), Wei-Shaw/sub2api/issues/1308 (2026-03-26)",
      violates: {
        model: "claude-sonnet-4-5",
        body: askClaude({
          messages: [
            { role: "user", content: "Hi" },
            {
              role: "assistant",
              content: [
                { type: "server_tool_use", id: "srvtoolu_s-1", name: "web_search", input: {} },
                { type: "web_search_tool_result", tool_use_id: "srvtoolu_s-1", content: [] },
              ],
            },
            { role: "user", content: "Sure?" },
          ],
        }),
      },
    },
    {
      id: "unsealed-search",
      when: someBlock(
        ({ type, content }) =>
          type === "web_search_tool_result" &&
          listOf(content).some(({ encrypted_content: sealed }) => !sealed),
      ),
      says: "messages.1.content.0: Invalid encrypted_content in search_result block",
      source: "github.com/code-yeongyu/senpi/pull/150 (2026-07-07)",
      violates: {
        model: "claude-sonnet-4-5",
        body: askClaude({
          messages: [
            { role: "user", content: "Hi" },
            {
              role: "assistant",
              content: [
                {
                  type: "server_tool_use",
                  id: "srvtoolu_1",
                  name: "web_search",
                  input: { query: "q" },
                },
                {
                  type: "web_search_tool_result",
                  tool_use_id: "srvtoolu_1",
                  content: [
                    {
                      type: "web_search_result",
                      url: "https://a.test/",
                      title: "A",
                      encrypted_content: "",
                    },
                  ],
                },
                { type: "text", text: "So." },
              ],
            },
            { role: "user", content: "Sure?" },
          ],
        }),
      },
    },
  ],
);
