import { afterAll, expect, test } from "bun:test";
import { pollUntil } from "../../../../test/support/poll-until.ts";
import { systemClock } from "../../../platform/kernel/clock.ts";
import type { Provider } from "../../catalog/model.ts";
import { UpstreamClient } from "../../upstream/upstream-client.ts";
import { ProviderApi } from "./provider-api.ts";

const encoder = new TextEncoder();

/** Answers with lines: those of `/whole` end, and those of any other path never do. */
const server = Bun.serve({
  port: 0,
  fetch: (request) =>
    new Response(
      new ReadableStream({
        start(controller) {
          for (const text of ['{"id":1}\n{"id"', ':"\u00e9', '"}\n\nno JSON\n', '{"id":3}'])
            controller.enqueue(encoder.encode(text));
          if (new URL(request.url).pathname === "/whole") controller.close();
        },
      }),
    ),
});
afterAll(() => server.stop(true));

const provider = {
  name: "Acme",
  baseUrl: `http://127.0.0.1:${server.port}`,
  apiKey: "secret",
  credentialHeader: { name: "authorization", prefix: "Bearer " },
  headers: {},
} as unknown as Provider;

test("the lines of an answer are read wherever its pieces are cut", async () => {
  const api = new ProviderApi(provider, new UpstreamClient({ clock: systemClock }));
  const lines = await Array.fromAsync(api.lines("/whole"));
  expect(lines).toEqual([{ id: 1 }, { id: "\u00e9" }, {}, { id: 3 }]);
});

test("an answer whose reader ends before it is aborted", async () => {
  const upstream = new UpstreamClient({ clock: systemClock });
  for await (const line of new ProviderApi(provider, upstream).lines("/endless")) {
    expect([line, upstream.connectionCount]).toEqual([{ id: 1 }, 1]);
    break;
  }
  await pollUntil(() => upstream.connectionCount === 0);
});
