import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider } from "../../support/gateway.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { chatRequest } from "../api/chat-request.ts";
import { type PeopledGateway, startPeopled } from "../api/people-browser.ts";
import { engines } from "../api/two-workspaces.ts";

describe.each(engines)("the playground key, on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  let upstream: FaultUpstream;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    upstream.script((request) => chatAnswer(request, {}));
    const models = [{ id: "acme/large", pricing: { prompt: "0", completion: "0" } }];
    people = await startPeopled(await freshUrl(), {
      providers: [
        provider({
          id: "acme",
          base_url: upstream.baseUrl,
          dialect: "openai-chat",
          api_key: "k",
          models,
        }),
      ],
    });
  }, 240_000);
  afterAll(async () => {
    await people.stop();
    upstream.stop();
  });

  const issue = (): Promise<unknown> => people.owner.json("POST", "/session/playground-key");
  const send = (key: unknown, path = "/models", body?: unknown): Promise<Response> =>
    fetch(people.gateway().baseUrl + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${textAt(key, "key")}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

  test("records requests under the name Playground with one key id, which is not listed", async () => {
    const first = await issue();
    expect((await send(first, "/chat/completions", chatRequest())).status).toBe(200);
    const second = await issue();
    expect(at(second, "key_id")).toBe(at(first, "key_id"));
    expect((await send(second, "/chat/completions", chatRequest())).status).toBe(200);
    expect((await send(first)).status).toBe(401);
    expect(
      listAt(await people.owner.json("GET", "/keys"), "data").map((key) => at(key, "id")),
    ).not.toContain(at(first, "key_id"));
    const rows = listAt(await people.owner.json("GET", "/analytics/generations"), "data");
    expect(rows).toHaveLength(2);
    for (const row of rows)
      expect(row).toMatchObject({
        key_id: at(first, "key_id"),
        key_name: "Playground",
        status: "completed",
      });
    const connections = listAt(await people.owner.json("GET", "/connections"), "data");
    expect(connections).toMatchObject([{ id: at(first, "connection_id"), origin: "playground" }]);
  });

  test("requested in parallel by several tabs shares one record", async () => {
    const keys = await Promise.all([issue(), issue(), issue()]);
    expect(new Set(keys.map((key) => at(key, "key_id"))).size).toBe(1);
    expect(
      (await Promise.all(keys.map((key) => send(key)))).filter(({ status }) => status === 200),
    ).toHaveLength(1);
  });

  test("allows inference but no administration, and ends when it is disconnected", async () => {
    const key = await issue();
    expect((await send(key, "/routing/explain", chatRequest())).status).toBe(200);
    expect((await send(key, "/keys", { name: "more" })).status).toBe(403);
    expect((await send(key, "/session/playground-key", {})).status).toBe(403);
    await people.owner.json("DELETE", `/connections/${textAt(key, "connection_id")}`);
    expect((await send(key)).status).toBe(401);
  });
});
