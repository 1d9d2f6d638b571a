import { afterAll, beforeAll, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { readChatStream } from "./read-chat-stream.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({ providers: [acme(upstream.baseUrl)] });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

/** Usage in other words than OpenAI's, all of them 11 tokens in and 7 out. */
const forms: Record<string, Record<string, unknown>> = {
  "without a total": { prompt_tokens: 11, completion_tokens: 7 },
  "in Anthropic's format": { input_tokens: 11, output_tokens: 7 },
  "with only the total missing, with spaces": {
    completion_tokens: 7,
    prompt_tokens: 11,
    x: { total: 18 },
  },
};

test.each(Object.keys(forms))(
  "usage %s reaches the client with the three token counts of chat",
  async (name) => {
    const usage = forms[name] ?? {};
    upstream.enqueue(
      (request) => chatAnswer(request, { usage }),
      (request) => chatAnswer(request, { usage }),
    );
    const whole: unknown = await (await gateway.post("/chat/completions", chatRequest())).json();
    const { chunks } = await readChatStream(
      await gateway.post("/chat/completions", chatRequest({ stream: true })),
    );
    for (const shown of [at(whole, "usage"), at(chunks.at(-1), "usage")])
      expect(shown).toEqual({
        ...usage,
        prompt_tokens: 11,
        completion_tokens: 7,
        total_tokens: 18,
        cost: 0.000016,
      });
  },
);
