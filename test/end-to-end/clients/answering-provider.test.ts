import { describe, expect, test } from "bun:test";
import { clientStage, modelIn, upstreamDialects } from "./support/client-stage.ts";

/**
 * Clients of OpenRouter read which provider answered, and Pydantic AI's `OpenRouterModel` (2.68)
 * throws where a whole answer does not say it.
 */
describe("a chat answer names the provider, from an upstream of", () => {
  const stage = clientStage();
  const ask = async (body: Record<string, unknown>): Promise<string> => {
    stage.upstream.say({ text: ["Hello."] });
    const messages = [{ role: "user", content: "Hi" }];
    const response = await stage.gateway.post("/chat/completions", { messages, ...body });
    return response.text();
  };

  test.each(upstreamDialects.map((dialect) => [dialect]))("%s", async (dialect) => {
    const model = modelIn(dialect);
    expect(JSON.parse(await ask({ model }))).toMatchObject({ model, provider: dialect });
    const frames = (await ask({ model, stream: true })).split("\n\n").filter(Boolean);
    const [last, done] = frames.slice(-2);
    expect(done).toBe("data: [DONE]");
    expect(JSON.parse(last?.slice("data: ".length) ?? "null")).toMatchObject({
      choices: [],
      provider: dialect,
    });
  });
});
