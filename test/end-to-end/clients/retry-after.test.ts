import { expect, test } from "bun:test";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import { aiSdkAnthropic } from "./adapters/ai-sdk-anthropic-adapter.ts";
import { aiSdkChat, openrouterProvider } from "./adapters/ai-sdk-chat-adapters.ts";
import { aiSdkResponses } from "./adapters/ai-sdk-responses-adapter.ts";
import { anthropicSdk } from "./adapters/anthropic-adapter.ts";
import { openaiChat } from "./adapters/openai-chat-adapter.ts";
import { openaiResponses } from "./adapters/openai-responses-adapter.ts";
import { clientStage, modelIn } from "./support/client-stage.ts";

const stage = clientStage();
const clients = [
  openaiChat,
  openaiResponses,
  anthropicSdk,
  aiSdkChat,
  aiSdkResponses,
  aiSdkAnthropic,
  openrouterProvider,
];

test("after a provider's 429 clients wait for Retry-After and retry once", async () => {
  const { upstream } = stage;
  const busy = json(wireOf("openai-chat").errorBody(429), {
    status: 429,
    headers: { "retry-after": "1" },
  });
  upstream.enqueue(...clients.map(() => busy));
  upstream.say(...clients.map(() => ({ text: ["At last."] })));
  const beganMs = performance.now();
  const replies = await Promise.all(
    clients.map((client) =>
      client.connect(stage.options({ retries: 2 }))({
        model: modelIn("openai-chat"),
        turns: [{ role: "user", text: "Hello" }],
        stream: false,
      }),
    ),
  );
  expect(replies.map(({ text }) => text)).toEqual(clients.map(() => "At last."));
  // No bound above: a busy machine takes longer, and asking too early is the fault that is meant.
  expect(performance.now() - beganMs).toBeGreaterThan(900);
  expect(upstream.requests).toHaveLength(2 * clients.length);
});
