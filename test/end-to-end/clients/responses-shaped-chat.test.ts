import { expect, test } from "bun:test";
import { clientStage, modelIn, upstreamDialects } from "./support/client-stage.ts";

const stage = clientStage();

test.each(upstreamDialects)("Cursor's body is answered as chat over %s", async (dialect) => {
  stage.upstream.say({ text: ["a.ts"] });
  const response = await stage.gateway.post("/chat/completions", {
    model: modelIn(dialect),
    input: [{ role: "user", content: [{ type: "input_text", text: "List the files." }] }],
    tools: [{ type: "function", name: "list", parameters: { type: "object" } }],
    truncation: "auto",
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-service-translation-loss")).toContain("truncation");
  expect(await response.json()).toMatchObject({
    object: "chat.completion",
    choices: [{ message: { role: "assistant", content: "a.ts" } }],
  });
  const sent = JSON.stringify(stage.upstream.requests.at(-1)?.json());
  expect(sent).toContain("List the files.");
  expect(sent).toContain("list");
});
