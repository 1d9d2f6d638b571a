import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  startOauthUpstream,
  type OauthUpstream,
} from "../../../support/mcp-upstream/oauth-upstream.ts";
import { at, textAt } from "../../api/at.ts";
import { startPeopled, type Browser, type PeopledGateway } from "../../api/people-browser.ts";

let people: PeopledGateway;
let upstream: OauthUpstream;
let other: Browser;
let folder = "";
const secrets = { owner: "", other: "" };

beforeAll(async () => {
  upstream = startOauthUpstream();
  folder = mkdtempSync(join(tmpdir(), "switchyard-grants-"));
  people = await startPeopled(`sqlite:${join(folder, "gateway.db")}`, {
    mcp: {
      servers: [
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
      allowedNetworks: [],
      maxRounds: 4,
    },
  });
  const made = await people.owner.json("POST", "/organizations", { name: "Two people" });
  other = await people.invited(textAt(made, "id"), { email: "b@example.com", role: "member" });
  for (const [name, person] of [
    ["owner", people.owner],
    ["other", other],
  ] as const)
    secrets[name] = textAt(await person.json("POST", "/keys", { name: "agent" }), "key");
}, 60_000);
afterAll(async () => {
  await people.stop();
  await upstream.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function connect(who: keyof typeof secrets): Promise<Client> {
  const client = new Client({ name: "agent", version: "1" });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${people.gateway().origin}/mcp/mail`), {
      requestInit: { headers: { authorization: `Bearer ${secrets[who]}` } },
    }),
  );
  return client;
}

async function whoami(who: keyof typeof secrets, name = "whoami"): Promise<string> {
  const client = await connect(who);
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
  expect(await whoami("owner", "connect")).toContain("/connect/mail");
  const back = await connectAs(people.owner, "olga");
  expect(await back.json()).toEqual({ connected: true, id: "mail" });
  expect(await whoami("owner")).toBe("you are olga");
});

test("another person is not the first one, in parallel and across refreshes and restarts", async () => {
  expect(await whoami("other")).toContain("is not connected");
  await connectAs(other, "ben");
  const both = async () => {
    const asked = Array.from({ length: 8 }, (_, index) => (index % 2 === 0 ? "owner" : "other"));
    const told = await Promise.all(asked.map((who) => whoami(who as keyof typeof secrets)));
    expect(told).toEqual(asked.map((who) => `you are ${who === "owner" ? "olga" : "ben"}`));
  };
  await both();
  upstream.expireTokens();
  await both();
  expect([upstream.refreshes, upstream.reused]).toEqual([2, 0]);
  await people.restart();
  await both();
}, 30_000);

test("a consent belongs to the person who began it, and is used once", async () => {
  const begun = await people.owner.api("GET", "/mcp-servers/mail/connect");
  const back = upstream.consent(begun.headers.get("location") ?? "", "olga");
  expect((await other.ask("GET", back)).status).toBe(400);
  expect((await people.owner.ask("GET", back)).status).toBe(200);
  expect((await people.owner.ask("GET", back)).status).toBe(400);
  expect((await people.stranger().ask("GET", back)).status).toBe(401);
});

test("tokens that were revoked or forgotten lead back to the link", async () => {
  upstream.revoke("ben");
  expect(await whoami("other")).toContain("is not connected");
  expect(await whoami("owner")).toBe("you are olga");
  await people.owner.json("DELETE", "/mcp-servers/mail/connection");
  expect(await whoami("owner")).toContain("is not connected");
});
