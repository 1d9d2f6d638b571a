import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, testLlmKey } from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

const cheap = { models: [{ id: "acme/large", pricing: { prompt: "0.10", completion: "0.10" } }] };
const dear = { models: [{ id: "acme/large", pricing: { prompt: "9", completion: "9" } }] };

describe.each(engines)("privacy settings on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    workspaces = await startTwoWorkspaces(freshUrl, {
      providers: [
        acme(upstream.baseUrl, { id: "keeps", name: "Keeps Everything", ...cheap }),
        acme(upstream.baseUrl, {
          id: "forgets",
          name: "Forgets",
          data_policy: { zdr: true, data_collection: "deny" },
          ...dear,
        }),
      ],
    });
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  /**
   * Who serves a request of a key; sorted by price, so that the one that keeps everything is first.
   */
  const servedBy = async (
    secret = testLlmKey,
    provider: Record<string, unknown> = {},
  ): Promise<unknown> => {
    const answer = await workspaces.as(secret)(
      "POST",
      "/chat/completions",
      chatRequest({ provider: { sort: "price", ...provider } }),
    );
    if (answer.status !== 200)
      return `${answer.status} ${String(at(await answer.json(), "error.code"))}`;
    const id = answer.headers.get("x-service-trace-id");
    return at(
      await (await workspaces.as(secret)("GET", `/generation/gen_${id}`)).json(),
      "data.provider_name",
    );
  };
  const demand = (body: unknown, path = "/security/privacy"): Promise<Response> =>
    workspaces.own("PATCH", path, body);
  const newKey = async (): Promise<{ secret: string; hash: string; id: string }> => {
    const created: unknown = await (
      await workspaces.own("POST", "/keys", { name: "private" })
    ).json();
    return {
      secret: textAt(created, "key"),
      hash: textAt(created, "data.hash"),
      id: textAt(created, "data.id"),
    };
  };

  test("a workspace's zdr and blocked providers apply from the next request, to it alone, across a restart", async () => {
    expect(await servedBy()).toBe("keeps");
    expect(await (await demand({ zdr: true })).json()).toMatchObject({
      zdr: true,
      blocked_providers: [],
    });
    expect(await servedBy()).toBe("forgets");
    expect(await servedBy(testLlmKey, { zdr: false })).toBe("forgets");
    expect(await servedBy(testLlmKey, { only: ["keeps"] })).toBe("403 forbidden");
    expect(await (await workspaces.stranger("GET", "/security/privacy")).json()).toMatchObject({
      zdr: false,
      blocked_providers: [],
    });
    expect(
      await (await demand({ zdr: false, blocked_providers: ["keeps everything", "KEEPS"] })).json(),
    ).toMatchObject({ zdr: false, blocked_providers: ["keeps"] });
    expect(await servedBy()).toBe("forgets");
    await workspaces.restart();
    expect(await (await workspaces.own("GET", "/security/privacy")).json()).toMatchObject({
      zdr: false,
      blocked_providers: ["keeps"],
    });
    expect(await servedBy()).toBe("forgets");
    await demand({ blocked_providers: ["keeps", "forgets"] });
    expect(await servedBy()).toBe("403 forbidden");
    await demand({ blocked_providers: [] });
    expect(await servedBy()).toBe("keeps");
  });

  test("a key's own settings apply to it and its child keys, in addition to the workspace's", async () => {
    const { secret, hash, id } = await newKey();
    const child = textAt(
      await (await workspaces.as(secret)("POST", "/key/children", { name: "child" })).json(),
      "key",
    );
    const changed = await demand({ zdr: true }, `/security/keys/${hash}`);
    expect(await changed.json()).toEqual({ id, privacy: { zdr: true, blocked_providers: [] } });
    expect([await servedBy(secret), await servedBy(child), await servedBy()]).toEqual([
      "forgets",
      "forgets",
      "keeps",
    ]);
    await demand({ blocked_providers: ["forgets"] });
    expect(await servedBy(secret)).toBe("403 forbidden");
    await demand({ blocked_providers: [] });
    expect(
      (await workspaces.stranger("PATCH", `/security/keys/${hash}`, { zdr: false })).status,
    ).toBe(404);
    const rotated: unknown = await (await workspaces.own("POST", `/keys/${hash}/rotate`)).json();
    expect(await servedBy(textAt(rotated, "key"))).toBe("forgets");
  });

  test("zero data retention can be required on any of four levels, and each is sufficient", async () => {
    const { hash, secret } = await newKey();
    const slug = "forgetful";
    await workspaces.own("POST", "/presets", {
      slug,
      name: slug,
      config: { model: "acme/large", provider: { zdr: true } },
    });
    const byPreset = async (provider: object): Promise<unknown> => {
      const body = chatRequest({
        model: `@preset/${slug}`,
        provider: { sort: "price", ...provider },
      });
      const answer = await workspaces.as(testLlmKey)("POST", "/chat/completions", body);
      if (answer.status !== 200)
        return `${answer.status} ${String(at(await answer.json(), "error.code"))}`;
      return answer.headers.get("x-service-provider-chain");
    };
    const levels: Record<
      string,
      { ask: (provider: object) => Promise<unknown>; set?: (zdr: boolean) => Promise<Response> }
    > = {
      account: {
        ask: (provider) => servedBy(testLlmKey, { ...provider }),
        set: (zdr) => demand({ zdr }),
      },
      key: {
        ask: (provider) => servedBy(secret, { ...provider }),
        set: (zdr) => demand({ zdr }, `/security/keys/${hash}`),
      },
      preset: { ask: byPreset },
      request: { ask: (provider) => servedBy(testLlmKey, { zdr: true, ...provider }) },
    };
    for (const [level, { ask, set }] of Object.entries(levels)) {
      await set?.(true);
      expect([level, await ask({}), await ask({ only: ["keeps"] })]).toEqual([
        level,
        "forgets",
        "403 forbidden",
      ]);
      await set?.(false);
    }
    expect(await servedBy()).toBe("keeps");
  });

  test("an unknown provider returns 400, and nothing changes", async () => {
    const refused = await errorOf(
      await demand({ zdr: true, blocked_providers: ["keeps", "keps"] }),
    );
    expect(refused).toMatchObject({
      status: 400,
      code: "bad_request",
      param: "blocked_providers[1]",
    });
    expect(await errorOf(await demand({ zero: true }))).toMatchObject({ status: 400 });
    expect(await servedBy()).toBe("keeps");
  });

  test("the list of credentials shows their access and warnings, and no secret", async () => {
    const { secret, hash, id } = await newKey();
    await demand({ zdr: true }, `/security/keys/${hash}`);
    const text = await (await workspaces.own("GET", "/security/keys")).text();
    const data = listAt(JSON.parse(text), "data");
    expect(data.find((credential) => at(credential, "id") === id)).toMatchObject({
      object: "credential",
      kind: "llm",
      name: "private",
      hash,
      status: "active",
      expires_at: null,
      last_used_at: null,
      scopes: null,
      privacy: { zdr: true, blocked_providers: [] },
      findings: ["no_expiry", "no_spending_limit"],
    });
    expect(data.find((credential) => at(credential, "kind") === "management")).toMatchObject({
      status: "active",
      hash: null,
      privacy: null,
      findings: ["no_expiry"],
      scopes: expect.arrayContaining(["write:security"]),
    });
    expect(text).not.toContain(secret);
    const strange = listAt(
      await (await workspaces.stranger("GET", "/security/keys")).json(),
      "data",
    );
    expect(strange.map((credential) => at(credential, "kind"))).toEqual(["management"]);
  });
});
