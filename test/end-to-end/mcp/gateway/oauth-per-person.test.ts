import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  startAskingUpstream,
  type AskingUpstream,
} from "../../../support/mcp-upstream/asking-upstream.ts";
import { pollUntil } from "../../../support/poll-until.ts";
import {
  startOauthUpstream,
  type OauthUpstream,
} from "../../../support/mcp-upstream/oauth-upstream.ts";
import type { AppSettings } from "../../../../src/app/settings-of.ts";
import { startGateway, type TestGateway } from "../../../support/gateway.ts";
import { freshRedis, hasRedis, redisMissing } from "../../../support/redis.ts";
import { migratedDatabase } from "../../../support/postgres.ts";
import { at, listAt, textAt } from "../../api/at.ts";
import { startPeopled, type Browser, type PeopledGateway } from "../../api/people-browser.ts";

let people: PeopledGateway;
let upstream: OauthUpstream;
let other: Browser;
let second: TestGateway;
const generations = ["legacy", "modern"] as const;
const asked: AskingUpstream[] = [];
const secrets = { owner: "", other: "" };

describe.skipIf(!hasRedis)(`servers that people connect${redisMissing}`, () => {
  beforeAll(async () => {
    upstream = startOauthUpstream();
    const asking = { legacy: startAskingUpstream("legacy"), modern: startAskingUpstream("modern") };
    asked.push(...Object.values(asking));
    const storageUrl = await migratedDatabase();
    const changes: Partial<AppSettings> = {
      sharedUrl: await freshRedis(),
      mcp: {
        servers: [
          ...generations.map((id) => ({
            id,
            name: id,
            target: { transport: "streamable_http" as const, url: asking[id].url },
            auth: { type: "none" as const },
            allowedTools: null,
            priceNanoUsd: 1_000_000n,
            timeoutMs: undefined,
            resultBytesMax: undefined,
          })),
          {
            id: "mail",
            name: "Mail",
            target: { transport: "streamable_http", url: upstream.url },
            auth: { type: "oauth_per_person" },
            allowedTools: null,
            priceNanoUsd: 0n,
            timeoutMs: undefined,
            resultBytesMax: undefined,
          },
        ],
        allowedNetworks: ["127.0.0.0/8"],
        maxRounds: 4,
      },
    };
    people = await startPeopled(storageUrl, changes);
    second = await startGateway({ ...changes, storageUrl });
    const made = await people.owner.json("POST", "/organizations", { name: "Two people" });
    other = await people.invited(textAt(made, "id"), { email: "b@example.com", role: "member" });
    for (const [name, person] of [
      ["owner", people.owner],
      ["other", other],
    ] as const)
      secrets[name] = textAt(await person.json("POST", "/keys", { name: "agent" }), "key");
  }, 240_000);
  afterAll(async () => {
    await people.stop();
    await second.stop();
    await upstream.stop();
    for (const each of asked) await each.stop();
  });

  async function connect(
    who: keyof typeof secrets,
    gateway: TestGateway = people.gateway(),
  ): Promise<Client> {
    const client = new Client({ name: "agent", version: "1" });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${gateway.origin}/mcp/mail`), {
        requestInit: { headers: { authorization: `Bearer ${secrets[who]}` } },
      }),
    );
    return client;
  }

  async function whoami(
    who: keyof typeof secrets,
    { name = "whoami", gateway }: { name?: string; gateway?: TestGateway } = {},
  ): Promise<string> {
    const client = await connect(who, gateway);
    const result = await client.callTool({ name, arguments: {} });
    await client.close();
    return String(at(result, "content.0.text"));
  }

  /** Opens the link of a tool's answer as a person, consents, and comes back. */
  async function connectAs(browser: Browser, person: string): Promise<Response> {
    const begun = await browser.api("GET", "/mcp-servers/mail/connect");
    expect(begun.status).toBe(302);
    return browser.ask("GET", upstream.consent(begun.headers.get("location") ?? "", person));
  }

  test("a tool's answer is the link until its person has connected the server", async () => {
    const client = await connect("owner");
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["connect"]);
    await client.close();
    expect(await whoami("owner", { name: "connect" })).toContain("/connect/mail");
    const back = await connectAs(people.owner, "olga");
    expect(await back.json()).toEqual({ connected: true, id: "mail" });
    expect(await whoami("owner")).toBe("you are olga");
  });

  test("another person is not the first one, in parallel, at two gateways, across refreshes and restarts", async () => {
    expect(await whoami("other")).toContain("is not connected");
    await connectAs(other, "ben");
    const both = async () => {
      const asked = Array.from({ length: 8 }, (_, index) => (index % 2 === 0 ? "owner" : "other"));
      const told = await Promise.all(
        asked.map((who, index) =>
          whoami(who as keyof typeof secrets, {
            gateway: index % 4 < 2 ? people.gateway() : second,
          }),
        ),
      );
      expect(told).toEqual(asked.map((who) => `you are ${who === "owner" ? "olga" : "ben"}`));
    };
    await both();
    for (const refreshes of [2, 4, 6]) {
      upstream.expireTokens();
      await both();
      expect([upstream.refreshes, upstream.reused]).toEqual([refreshes, 0]);
    }
    await people.restart();
    await both();
  }, 240_000);

  test("a consent belongs to the person who began it, and is used once", async () => {
    const begun = await people.owner.api("GET", "/mcp-servers/mail/connect");
    const back = upstream.consent(begun.headers.get("location") ?? "", "olga");
    expect((await other.ask("GET", back)).status).toBe(400);
    expect((await people.owner.ask("GET", back)).status).toBe(200);
    expect((await people.owner.ask("GET", back)).status).toBe(400);
    expect((await people.stranger().ask("GET", back)).status).toBe(401);
  });

  test("a connection that an administrator ends is gone at both gateways, and revoked", async () => {
    const namesOf = (list: unknown) => listAt(list, "data").map((row) => at(row, "name"));
    const listed = await other.json("GET", "/mcp-servers/mail/connections");
    expect(namesOf(listed)).toEqual(["b@example.com"]);
    const foreign = await people.owner.json("GET", "/mcp-servers/mail/connections");
    expect(namesOf(foreign)).toEqual(["Olga Owner"]);
    const path = `/mcp-servers/mail/connections/${textAt(listed, "data.0.user_id")}`;
    expect((await people.owner.api("DELETE", path)).status).toBe(404);
    expect(await whoami("other", { gateway: second })).toBe("you are ben");
    expect((await other.api("DELETE", path)).status).toBe(200);
    expect((await other.api("DELETE", path)).status).toBe(404);
    expect(upstream.revoked).toEqual(["ben"]);
    for (const gateway of [people.gateway(), second])
      expect(await whoami("other", { gateway })).toContain("is not connected");
    await connectAs(other, "ben");
    expect(await whoami("other", { gateway: second })).toBe("you are ben");
  });

  /** Connects an agent whose answers to questions reach the other gateway. */
  async function connectAcross(server: string, agent: (typeof generations)[number]) {
    const client = new Client(
      { name: "agent", version: "1" },
      {
        capabilities: { elicitation: { form: {} } },
        versionNegotiation: { mode: agent === "legacy" ? "legacy" : "auto" },
      },
    );
    client.setRequestHandler("elicitation/create", () => ({
      action: "accept",
      content: { name: "Olga" },
    }));
    const isAnswer = (body: unknown): boolean =>
      typeof body === "string" && (body.includes('"inputResponses"') || !body.includes('"method"'));
    const url = new URL(`${people.gateway().origin}/mcp/${server}`);
    let across = 0;
    const transport = new StreamableHTTPClientTransport(url, {
      requestInit: { headers: { authorization: `Bearer ${secrets.owner}` } },
      fetch: (to, init) => {
        if (!isAnswer(init?.body)) return fetch(to, init);
        across += 1;
        return fetch(second.origin + new URL(to).pathname, init);
      },
    });
    await client.connect(transport);
    return { client, across: () => across };
  }

  test.each(generations.flatMap((server) => generations.map((agent) => [server, agent] as const)))(
    "a question of a server (%s) is answered by an agent (%s) at the other gateway",
    async (server, agent) => {
      const { client, across } = await connectAcross(server, agent);
      const result = await client.callTool({ name: "name", arguments: {} });
      expect(at(result, "content.0.text")).toBe("hello Olga" as never);
      expect(across()).toBe(1);
      await client.close();
    },
  );

  test("a server that is registered at one gateway is heard of at the other", async () => {
    let heard = 0;
    const client = new Client(
      { name: "agent", version: "1" },
      { versionNegotiation: { mode: "legacy" } },
    );
    client.setNotificationHandler("notifications/tools/list_changed", () => {
      heard += 1;
    });
    const streamed = Promise.withResolvers<void>();
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${second.origin}/mcp/all`), {
        requestInit: { headers: { authorization: `Bearer ${secrets.owner}` } },
        fetch: async (url, init) => {
          const answer = await fetch(url, init);
          if (init?.method === "GET") streamed.resolve();
          return answer;
        },
      }),
    );
    await streamed.promise;
    await people.owner.json("POST", "/mcp-servers", { id: "new", url: asked[0]?.url });
    await pollUntil(() => heard > 0);
    await client.close();
    await people.owner.json("DELETE", "/mcp-servers/new");
  });

  test("a person who is not signed in comes to the link by way of the sign-in", async () => {
    const page = await people.stranger().ask("GET", "/connect/mail");
    expect(page.status).toBe(303);
    expect(page.headers.get("location")).toBe("/sign-in?return_to=%2Fconnect%2Fmail");
    const signedIn = await people.owner.ask("GET", "/connect/mail");
    expect(signedIn.headers.get("location")).toBe("/api/v1/mcp-servers/mail/connect");
  });

  test("tokens that were revoked or forgotten lead back to the link", async () => {
    upstream.revoke("ben");
    expect(await whoami("other")).toContain("is not connected");
    expect(await whoami("owner")).toBe("you are olga");
    await people.owner.json("DELETE", "/mcp-servers/mail/connection");
    expect(await whoami("owner")).toContain("is not connected");
  });
});
