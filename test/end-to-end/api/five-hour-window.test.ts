import { describe, expect, test } from "bun:test";
import { acme, testLlmKey } from "../../support/gateway.ts";
import { startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { engines, startTwoWorkspaces } from "./two-workspaces.ts";

const models = [
  { id: "acme/large", pricing: { prompt: "0.50", completion: "1.50" } },
  { id: "acme/tiny:free" },
];

describe.each(engines)("the five-hour window on %s", (_, freshUrl) => {
  test("survives a restart, applies to all keys of a workspace and skips free models", async () => {
    const upstream = await startFaultUpstream();
    const workspaces = await startTwoWorkspaces(freshUrl, {
      plans: { enterprise: { fiveHour: 6 } },
      providers: [acme(upstream.baseUrl, { models })],
    });
    const send = (secret: string, model = "acme/large"): Promise<Response> =>
      workspaces.as(secret)("POST", "/chat/completions", chatRequest({ model }));
    const child = textAt(
      await (await workspaces.as(testLlmKey)("POST", "/key/children", { name: "child" })).json(),
      "key",
    );
    const other = textAt(
      await (await workspaces.own("POST", "/keys", { name: "other" })).json(),
      "key",
    );
    for (const secret of [testLlmKey, child]) expect((await send(secret)).status).toBe(200);
    await send(testLlmKey, "acme/tiny:free");
    expect((await send(testLlmKey)).headers.get("x-ratelimit-remaining")).toBe("3");
    await workspaces.restart();
    expect((await send(testLlmKey)).headers.get("x-ratelimit-remaining")).toBe("2");
    expect((await send(child)).headers.get("x-ratelimit-remaining")).toBe("1");
    expect((await send(other)).headers.get("x-ratelimit-remaining")).toBe("0");
    const refused = await send(other);
    expect([refused.status, refused.headers.get("x-ratelimit-tier")]).toEqual([
      429,
      "starter-window",
    ]);
    const resetSeconds = Number(refused.headers.get("x-ratelimit-reset"));
    // The oldest request leaves when it would have left without the restart.
    expect(resetSeconds).toBeWithin(18_000 - 60, 18_001);
    expect(refused.headers.get("retry-after")).toBe(String(resetSeconds));
    await workspaces.stop();
    upstream.stop();
  }, 240_000);
});
