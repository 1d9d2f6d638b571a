import { expect, test } from "bun:test";
import { Server } from "@modelcontextprotocol/server";
import { sessions } from "../../../test/support/mcp-upstream/asking-upstream.ts";
import { pollUntil } from "../../../test/support/poll-until.ts";
import { parseRange } from "../../platform/kernel/network/address-range.ts";
import { systemClock } from "../../platform/kernel/clock.ts";
import { ServerConnections } from "./server-connections.ts";
import type { UpstreamServer } from "./upstream-server.ts";

test("the stream of a server that does not end its session is closed all the same", async () => {
  const answer = sessions(() => new Server({ name: "s", version: "1" }, { capabilities: {} }));
  let [opened, closed, refused] = [0, 0, 0];
  const listening = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch(request) {
      if (request.method === "DELETE") {
        refused += 1;
        return new Response("not now", { status: 500 });
      }
      if (request.method === "GET") {
        opened += 1;
        request.signal.addEventListener("abort", () => (closed += 1));
      }
      return answer(request);
    },
  });
  const connections = new ServerConnections({
    guard: { allowed: [parseRange("127.0.0.0/8")].filter((range) => range !== undefined) },
    grants: { providerOf: () => ({}) as never, note: () => undefined },
    clock: systemClock,
    version: "1",
  });
  const server: UpstreamServer = {
    id: "s",
    name: "s",
    workspaceId: "ws_a",
    target: { transport: "streamable_http", url: `http://127.0.0.1:${listening.port}/mcp` },
    auth: { type: "none" },
    allowedTools: null,
    priceNanoUsd: 0n,
    timeoutMs: 60_000,
    resultBytesMax: 1_000,
    createdAtMs: null,
    updatedAtMs: null,
  };
  const listener = {
    capabilities: { elicitation: { form: {} } },
    ask: () => Promise.resolve({}),
    log: () => undefined,
  };
  const user = { session: "a", workspaceId: "ws_a", personId: "usr_a" };
  await connections.use(server, user, () => Promise.resolve(), listener);
  await pollUntil(() => opened === 1);
  connections.forget(server);
  await pollUntil(() => closed === 1);
  expect(refused).toBe(1);
  await connections.close();
  await listening.stop(true);
});
