import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import MiniSearch from "minisearch";
import { buildDocumentation } from "../../../src/app/parts/build-operations.ts";

interface Search {
  search(query: string): { id: string }[];
}

const script = join(import.meta.dir, "..", "..", "..", "docs", "site", "search.js");
const { createSearch } = (await import(script)) as {
  createSearch(engine: typeof MiniSearch, entries: unknown): Search;
};
const site = await buildDocumentation({
  version: "0.0.0-test",
  publicUrl: "http://127.0.0.1:8787",
});
const engine = createSearch(MiniSearch, JSON.parse(site.file("search.json")?.text ?? "[]"));

/** What people type, and the pages that answer it, of which one has to be among the first three. */
const queries: readonly (readonly [query: string, ...pages: string[]])[] = [
  ["docker", "operate/install"],
  ["docker compose", "operate/install", "operate/production"],
  ["kubernetes", "operate/install"],
  ["helm chart", "operate/install"],
  ["k8s", "operate/install"],
  ["systemd", "operate/install", "operate/production"],
  ["upgrade", "operate/install"],
  ["sso", "operate/people"],
  ["oidc login", "operate/people"],
  ["single sign-on with okta", "operate/people"],
  ["entra id", "operate/people"],
  ["google login", "operate/people"],
  ["passkey", "operate/people"],
  ["two-factor", "operate/people"],
  ["invite a colleague", "operate/people", "guides/team-keys"],
  ["forgot password", "operate/people"],
  ["roles", "operate/people", "guides/team-keys"],
  ["grafana", "operate/observability"],
  ["prometheus", "operate/observability", "reference/metrics"],
  ["langfuse", "operate/observability"],
  ["opentelemetry", "operate/observability"],
  ["monitoring alerts", "operate/observability", "guides/budgets"],
  ["datadog", "operate/observability"],
  ["prompt caching", "guides/build", "guides/charges"],
  ["structured output", "guides/build"],
  ["json schema", "guides/build"],
  ["tool calling", "guides/build"],
  ["function calling", "guides/build"],
  ["reasoning effort", "guides/build"],
  ["streaming", "guides/build", "reference/events"],
  ["retry errors", "guides/build", "guides/routing", "guides/troubleshooting"],
  ["how do I set a budget", "guides/budgets"],
  ["monthly spending limit", "guides/budgets", "guides/team-keys"],
  ["migrate from litellm", "guides/from-litellm"],
  ["litellm import", "guides/from-litellm"],
  ["switch from openrouter", "guides/from-openrouter"],
  ["portkey", "guides/from-portkey"],
  ["tensorzero", "guides/from-tensorzero"],
  ["helicone", "guides/from-helicone"],
  ["bifrost", "guides/from-bifrost"],
  ["come from openai api", "guides/from-openai", "guides/openai-sdk"],
  ["claude code", "guides/claude-code"],
  ["codex", "guides/codex"],
  ["gemini cli", "guides/gemini-cli"],
  ["google genai", "guides/google-genai"],
  ["cursor", "guides/editors"],
  ["vscode", "guides/editors"],
  ["continue extension", "guides/editors"],
  ["langchain", "guides/langchain"],
  ["vercel ai sdk", "guides/ai-sdk"],
  ["openai python", "guides/openai-sdk"],
  ["anthropic sdk base url", "guides/anthropic-sdk"],
  ["mcp server", "guides/mcp", "reference/mcp-tools"],
  ["embeddings", "guides/other-surfaces"],
  ["rerank", "guides/other-surfaces"],
  ["pdf", "guides/documents"],
  ["images vision", "guides/documents"],
  ["create api key", "guides/team-keys"],
  ["rotate a key", "guides/team-keys"],
  ["key limit", "guides/team-keys"],
  ["byok", "guides/own-provider-keys"],
  ["bring your own key", "guides/own-provider-keys"],
  ["fallback", "guides/routing"],
  ["load balancing", "guides/routing"],
  ["cheapest provider", "guides/routing"],
  ["ollama", "guides/local-models"],
  ["vllm", "guides/local-models"],
  ["cost of a request", "guides/charges"],
  ["why was I charged", "guides/charges"],
  ["stripe", "guides/card-payments"],
  ["top up credits", "guides/card-payments"],
  ["zero data retention", "guides/privacy"],
  ["gdpr", "guides/privacy"],
  ["oauth app", "guides/app-keys"],
  ["backup", "operate/backup"],
  ["restore database", "operate/backup"],
  ["high availability", "operate/several-gateways"],
  ["redis", "operate/several-gateways"],
  ["clickhouse", "operate/archive"],
  ["http proxy", "operate/network"],
  ["nginx", "operate/production", "operate/network"],
  ["reverse proxy", "operate/production"],
  ["performance benchmark", "operate/capacity"],
  ["402", "guides/troubleshooting", "reference/errors"],
  ["insufficient_balance", "guides/troubleshooting", "reference/errors"],
  ["why is it slow", "guides/troubleshooting"],
  ["rate limit 429", "guides/troubleshooting", "reference/limits", "reference/errors"],
  ["environment variables", "reference/configuration", "guides/from-openai"],
  ["add a provider", "operate/providers"],
  ["custom model pricing", "operate/providers"],
];

describe("the search of the documentation", () => {
  test.each(queries)("%s", (query, ...pages) => {
    const found = engine.search(query).map(({ id }) => id.replace("/docs/", "").split("#")[0]);
    const first = [...new Set(found)].slice(0, 3);
    expect(first.filter((page) => pages.includes(page ?? ""))).not.toEqual([]);
  });

  test("finds nothing for words that the pages do not have", () => {
    expect(engine.search("zzxqy")).toEqual([]);
  });
});
