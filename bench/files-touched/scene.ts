import { expect, test } from "bun:test";
import { provider, startGateway } from "../../test/support/gateway.ts";
import {
  answerFrames,
  pathOf,
  requestOf,
  wholeAnswer,
  type ClientName,
  type UpstreamName,
} from "../translation-work.ts";

/** What `bench/files-touched.ts` asks for. */
const scene = JSON.parse(process.env["SCENE"] ?? "{}") as {
  client: ClientName;
  upstream: UpstreamName;
  stream: boolean;
  times: number;
};

test("a gateway answers so many requests, one after another", async () => {
  const { client, upstream, stream, times } = scene;
  const answer = stream ? answerFrames(upstream).join("") : wholeAnswer(upstream);
  const type = stream ? "text/event-stream" : "application/json";
  const mock = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      await request.text();
      return new Response(answer, { headers: { "content-type": type } });
    },
  });
  const gateway = await startGateway({
    providers: [
      provider({
        id: "bench",
        base_url: `http://127.0.0.1:${mock.port}/v1`,
        dialect: upstream,
        api_key: "x",
        models: [
          {
            id: "bench/model",
            upstream_model: "large-v2",
            context_length: 4_000_000,
            max_completion_tokens: 16_384,
            pricing: { prompt: "0.50", completion: "1.50" },
          },
        ],
      }),
    ],
  });
  const body = requestOf(client, { model: "bench/model", stream });
  for (let count = 0; count < times; count += 1) {
    const response = await gateway.post(pathOf[client], body);
    expect(await response.text()).toContain("cost");
    expect(response.status).toBe(200);
  }
  await gateway.stop();
  await mock.stop(true);
});
