import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { responsesTool } from "../../../support/strict-vendors/samples.ts";
import type { VendorId } from "../../../support/strict-vendors/rule.ts";
import { addressOf } from "../support/client-dialect.ts";
import { clientOf } from "../support/pairs.ts";
import { clientRequests } from "./client-requests.ts";
import { startStrictScene, type StrictScene } from "./strict-scene.ts";

let scene: StrictScene;
beforeAll(async () => {
  scene = await startStrictScene();
});
afterAll(() => scene.end());

/** Models of every vendor, of each of its generations and kinds. */
const models: readonly (readonly [vendor: VendorId, model: string])[] = [
  ["openai", "gpt-4.1"],
  ["openai", "gpt-5"],
  ["openai", "gpt-5.1-codex"],
  ["openai", "gpt-5.4-mini"],
  ["openai", "gpt-5.6-sol"],
  ["openai", "o3"],
  ["azure", "gpt-5.5"],
  ["azure", "gpt-5.6-terra"],
  ["anthropic", "claude-haiku-4-5"],
  ["anthropic", "claude-sonnet-4-6"],
  ["anthropic", "claude-opus-4-7"],
  ["amazon-bedrock", "us.amazon.nova-pro-v1:0"],
  ["amazon-bedrock", "us.amazon.nova-2-lite-v1:0"],
  ["google", "gemini-2.0-flash"],
  ["google", "gemini-2.5-flash"],
  ["google", "gemini-3-flash-preview"],
  ["google", "gemini-3.1-pro-preview"],
  ["mistral", "mistral-large-latest"],
  ["deepseek", "deepseek-v4-pro"],
  ["moonshotai", "kimi-k2.5"],
  ["moonshotai", "kimi-k2-0905-preview"],
  ["xai", "grok-4.3"],
  ["xai", "grok-4.20-0309-reasoning"],
  ["groq", "llama-3.3-70b-versatile"],
  ["groq", "openai/gpt-oss-120b"],
  ["openrouter", "anthropic/claude-sonnet-4.5"],
  ["openrouter", "openai/gpt-5"],
  ["cohere", "command-a-03-2025"],
  ["vllm", "Qwen/Qwen3-32B"],
  ["llama-cpp", "qwen3-32b"],
];

/** Levels and thoughts that a client asks of Google's models which have none. */
const isOfAnotherGeneration = (model: string, what: string): boolean =>
  (what === "generateContent: a level" && model.startsWith("gemini-2")) ||
  (what === "generateContent: Gemini CLI" && model.startsWith("gemini-2.0"));

/** Native bodies that stay as they are, and efforts that are never clamped (contract). */
const asWritten = (vendor: VendorId, model: string, what: string): boolean =>
  (vendor === "anthropic" && what.startsWith("Messages")) ||
  (vendor === "google" && isOfAnotherGeneration(model, what)) ||
  (what.includes("tools without reasoning") && /^(?:gpt-5$|o3)|codex|gpt-oss/.test(model));

describe.each(models)("%s with %s refuses nothing of", (vendor, model) => {
  const cases = clientRequests.filter(({ what }) => !asWritten(vendor, model, what));
  test.each(cases.map((one) => [one.what, one] as const))("%s", async (_, { path, body }) => {
    scene.upstream.forget();
    const whole = { ...body, model: scene.idOf(vendor, model) };
    const sent =
      path === "google-generate" ? addressOf(clientOf(path), whole) : { path, body: whole };
    const answer = await scene.ask(sent.path, sent.body, vendor);
    const text = await answer.text();
    expect(scene.upstream.refusals.map(({ rules }) => rules)).toEqual([]);
    expect([answer.status, answer.status === 200 ? "" : text]).toEqual([200, ""]);
    expect(scene.upstream.received).toHaveLength(1);
    if (vendor !== "anthropic")
      expect(JSON.stringify(scene.upstream.received)).not.toContain("account_1111");
  });
});

describe("Codex before a model that reasons", () => {
  const codex = {
    input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }],
    instructions: "You are Codex.",
    tools: [responsesTool({ strict: false }), { type: "web_search" }],
    tool_choice: "auto",
    parallel_tool_calls: false,
    reasoning: { effort: "medium", summary: "auto" },
    include: ["reasoning.encrypted_content"],
    truncation: "auto",
    prompt_cache_key: "session-1",
    store: false,
    stream: true,
  };

  test.each([
    ["openai", "gpt-5.5"],
    ["openai", "gpt-5.4-nano"],
    ["azure", "gpt-5.5"],
    ["azure", "gpt-5.6-terra"],
  ] as const)("%s with %s is asked in its own dialect, with every field", async (vendor, model) => {
    scene.upstream.forget();
    const answer = await scene.ask(
      "/responses",
      { ...codex, model: scene.idOf(vendor, model) },
      vendor,
    );
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-service-translation-loss")).toBeNull();
    await answer.text();
    const [received] = scene.upstream.received;
    expect(received?.endpoint).toBe("responses");
    // The key of the prompt cache is the workspace's own at the provider.
    const { model: _, prompt_cache_key: key, ...sent } = received?.body ?? {};
    const { prompt_cache_key: __, ...asked } = codex;
    expect(key).toBeString();
    expect(sent).toEqual(asked);
  });

  test("a model without reasoning is asked in Responses too, and a chat client in chat", async () => {
    scene.upstream.forget();
    const model = scene.idOf("openai", "gpt-4.1");
    await scene.ask("/responses", { input: "Hi", model }, "openai");
    await scene.ask(
      "/chat/completions",
      { messages: [{ role: "user", content: "Hi" }], model },
      "openai",
    );
    expect(scene.upstream.received.map(({ endpoint }) => endpoint)).toEqual(["responses", "chat"]);
  });
});
