/**
 * The gateway as a client that the conformance suite runs: starts a gateway with the server whose
 * URL is the last argument, connects it where the scenario is one of OAuth, and calls its tools as
 * an agent does.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { textAt } from "../../api/at.ts";
import { startAtOrigin } from "../../api/people-browser.ts";

const url = process.argv.at(-1) ?? "";
const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? "";
const context = Object(JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}")) as {
  client_id?: string;
  client_secret?: string;
};
const usesOauth = scenario.startsWith("auth/");

const people = await startAtOrigin(undefined, {
  mcp: {
    servers: [
      {
        id: "suite",
        name: "Suite",
        target: { transport: "streamable_http", url },
        auth: usesOauth
          ? {
              type: "oauth_per_person",
              clientId: context.client_id,
              clientSecret: context.client_secret,
            }
          : { type: "none" },
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

/** Consents at the authorization server, which asks nothing, and comes back. */
async function consent(): Promise<void> {
  const begun = await people.owner.api("GET", "/mcp-servers/suite/connect");
  const asked = await fetch(begun.headers.get("location") ?? "", { redirect: "manual" });
  const back = new URL(asked.headers.get("location") ?? "");
  const ended = await people.owner.ask("GET", back.pathname + back.search);
  if (!ended.ok) throw new Error(`not connected: ${await ended.text()}`);
}

/** Returns arguments that a tool's schema accepts. */
const givenOf = (schema: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(Object(schema["properties"]) as Record<string, { type?: unknown }>).map(
      ([name, { type }]) => [
        name,
        type === "number" || type === "integer" ? 5 : type === "boolean" ? true : "text",
      ],
    ),
  );

if (usesOauth) await consent();
const key = textAt(await people.owner.json("POST", "/keys", { name: "agent" }), "key");
const client = new Client(
  { name: "agent", version: "1" },
  { capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {} } },
);
client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: {} }));
await client.connect(
  new StreamableHTTPClientTransport(new URL(`${people.gateway().origin}/mcp/suite`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  }),
);
const { tools } = await client.listTools();
for (const { name, inputSchema } of tools)
  console.log(
    name,
    JSON.stringify(await client.callTool({ name, arguments: givenOf(inputSchema) }).catch(String)),
  );
await client.close();
await people.stop();
process.exit(0);
