import { afterAll, beforeAll, expect, test } from "bun:test";
import { json, sse, stream } from "../../support/upstream/steps.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { clients } from "./support/pairs.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

const answer = {
  candidates: [{ content: { role: "model", parts: [] }, finishReason: "MALFORMED_FUNCTION_CALL", finishMessage: "Malformed call: f(1" }],
  usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 },
};

for (const streamed of [false, true]) {
  test.each(clients.map((client) => [client.name, client] as const))(
    `%s is told of a tool call of Gemini's that cannot be read, stream ${streamed}`, async (_, client) => {
      scene.upstreams["google-generate"].script(streamed ? stream([sse(answer)]) : json(answer));
      const { status, errors } = await scene.ask(client, { ...client.ask("Why?"), stream: streamed }, {
        providers: [providerId("google-generate")],
      });
      const message = "The model wrote a tool call that cannot be read (MALFORMED_FUNCTION_CALL): Malformed call: f(1";
      expect([status, errors.map(({ code }) => code)]).toEqual([502, ["upstream_error"]]);
      expect(errors[0]?.message).toContain(message);
      expect(errors[0]?.metadata).toMatchObject({ upstream_message: message, upstream_error: { code: "MALFORMED_FUNCTION_CALL" } });
    },
  );
}
