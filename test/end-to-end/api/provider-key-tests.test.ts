import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider } from "../../support/gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

/** The provider's words by outcome; a provider that is not reached says none. */
const reasons: Record<string, unknown> = {
  accepted: null,
  refused: "Incorrect API key provided.",
  unknown: expect.any(String),
};
const goodKey = "sk-of-acme-that-works";

/** A provider whose list of models asks for the one good key. */
const startProvider = () =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const authorization = request.headers.get("authorization");
      if (authorization === `Bearer ${goodKey}`) return Response.json({ object: "list", data: [] });
      return Response.json(
        { error: { message: "Incorrect API key provided.", code: "invalid_api_key" } },
        { status: 401 },
      );
    },
  });

describe.each(engines)("tests of provider keys on %s", (_, freshUrl) => {
  const upstream = startProvider();
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    const models = [{ id: "acme/large", pricing: { prompt: "1", completion: "1" } }];
    workspaces = await startTwoWorkspaces(freshUrl, {
      providers: [
        provider({
          id: "acme",
          name: "Acme Inference",
          base_url: `http://127.0.0.1:${upstream.port}/v1`,
          models,
        }),
        provider({
          id: "gone",
          name: "Gone",
          base_url: "http://127.0.0.1:1/v1",
          models: [{ ...models[0], id: "gone/large" }],
        }),
      ],
    });
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    await upstream.stop(true);
  });

  const tested = (body: unknown): Promise<Response> =>
    workspaces.own("POST", "/auth/byok/test", body);

  test.each([
    ["acme", goodKey, "accepted"],
    ["ACME", "sk-of-acme-mistyped", "refused"],
    ["gone", goodKey, "unknown"],
  ])("%s with a key that is not stored: %s returns %s", async (id, key, outcome) => {
    const response = await tested({ provider_id: id, api_key: key });
    expect(await response.json()).toEqual({
      object: "provider_key_test",
      provider_id: id.toLowerCase(),
      outcome,
      message: expect.any(String),
      reason: reasons[outcome],
      latency_ms: expect.any(Number),
    });
    expect(listAt(await (await workspaces.own("GET", "/auth/byok")).json(), "data")).toEqual([]);
  });

  test("an invalid field is named, and the key is in no response or log", async () => {
    expect(await errorOf(await tested({ provider_id: "nobody", api_key: goodKey }))).toMatchObject({
      status: 400,
      param: "provider_id",
    });
    expect(await errorOf(await tested({ provider_id: "acme", api_key: "short" }))).toMatchObject({
      status: 400,
      param: "api_key",
    });
    expect(workspaces.gateway().logLines.join("\n")).not.toContain(goodKey);
  });

  test("a stored key can be tested by its id, but only by its own workspace", async () => {
    const stored = await (
      await workspaces.own("POST", "/auth/byok", { provider_id: "acme", api_key: goodKey })
    ).json();
    const path = `/auth/byok/keys/${textAt(stored, "id")}/test`;
    expect(await (await workspaces.own("POST", path)).json()).toMatchObject({
      provider_id: "acme",
      outcome: "accepted",
    });
    await workspaces.own("PATCH", `/auth/byok/keys/${textAt(stored, "id")}`, {
      api_key: "sk-of-acme-mistyped",
    });
    const refused: unknown = await (await workspaces.own("POST", path)).json();
    expect([at(refused, "outcome"), at(refused, "message")]).toEqual([
      "refused",
      expect.stringContaining("refused the key"),
    ]);
    const [group] = listAt(await (await workspaces.own("GET", "/auth/byok")).json(), "data");
    expect(at(group, "keys.0")).toMatchObject({
      status: "refused",
      status_reason: "Incorrect API key provided.",
    });
    expect((await workspaces.stranger("POST", path)).status).toBe(404);
  });
});
