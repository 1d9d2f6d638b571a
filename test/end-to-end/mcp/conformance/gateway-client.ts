import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { at, textAt } from "../../api/at.ts";
import { type PeopledGateway, startPeopled } from "../../api/people-browser.ts";

/** What the suite wants to be played, against a server at this address. */
export interface Scenario {
  url: string;
  scenario: string;
  context: {
    client_id?: string;
    client_secret?: string;
    toolCalls?: { name: string; arguments: Record<string, unknown> }[];
  };
}

/** The public origin that the suite takes a client's document from. */
const suiteOrigin = "https://conformance-test.local";

/** Starts the gateway that is the suite's client. */
export const startSuiteClient = (): Promise<PeopledGateway> =>
  startPeopled(undefined, {
    publicUrl: () => suiteOrigin,
    mcp: { servers: [], allowedNetworks: ["127.0.0.0/8", "::1/128"], maxRounds: 4 },
  });

/** Consents at the authorization server, which asks nothing, and comes back. */
async function consent({ owner }: PeopledGateway, id: string): Promise<void> {
  const begun = await owner.api("GET", `/mcp-servers/${id}/connect`);
  if (begun.status !== 302) throw new Error(`not begun: ${await begun.text()}`);
  const asked = await fetch(begun.headers.get("location") ?? "", { redirect: "manual" });
  const back = new URL(asked.headers.get("location") ?? "");
  const ended = await owner.ask("GET", back.pathname + back.search);
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

async function connectAgent(people: PeopledGateway, id: string): Promise<Client> {
  const key = textAt(await people.owner.json("POST", "/keys", { name: "agent" }), "key");
  const client = new Client(
    { name: "agent", version: "1" },
    { capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {} } },
  );
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: {} }));
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${people.gateway().origin}/mcp/${id}`), {
      requestInit: { headers: { authorization: `Bearer ${key}` } },
    }),
  );
  return client;
}

/** The most consents that a person gives for one call. */
const consentsMax = 2;

/** Calls the tools of a server, or those that the suite names. Returns what came of the calls. */
async function callTools(
  people: PeopledGateway,
  { id, toolCalls }: { id: string; toolCalls: Scenario["context"]["toolCalls"] },
): Promise<string[]> {
  const client = await connectAgent(people, id);
  const { tools } = await client.listTools();
  const calls =
    toolCalls ?? tools.map(({ name, inputSchema }) => ({ name, arguments: givenOf(inputSchema) }));
  const outcomes: string[] = [];
  const call = async (each: (typeof calls)[number]): Promise<void> => {
    for (let consents = 0; consents <= consentsMax; consents += 1) {
      const result = await client.callTool(each).catch(String);
      const text = JSON.stringify(at(result, "content.0.text") ?? result);
      outcomes.push(`${each.name}: ${text}`);
      if (!text.includes(`/connect/${id}`) || consents === consentsMax) return;
      await consent(people, id);
    }
  };
  for (const each of calls) await call(each);
  await client.close();
  return outcomes;
}

/**
 * Registers the suite's server, connects it where the scenario is one of OAuth, and calls its tools
 * as an agent does, whose person opens each link. Returns what came of the calls.
 */
export async function playScenario(
  people: PeopledGateway,
  { url, scenario, context }: Scenario,
): Promise<string[]> {
  const usesOauth = scenario.startsWith("auth/");
  const { client_id, client_secret } = context;
  const id = `s-${crypto.randomUUID().slice(0, 8)}`;
  const auth = usesOauth ? { type: "oauth_per_person", client_id, client_secret } : undefined;
  await people.owner.json("POST", "/mcp-servers", { id, url, auth });
  try {
    if (usesOauth) await consent(people, id);
    const outcomes = await callTools(people, { id, toolCalls: context.toolCalls });
    // Tokens of the authorization server that the server had before are refused from here on.
    if (scenario === "auth/authorization-server-migration") {
      await people.owner.json("POST", `/mcp-servers/${id}/refresh`);
      await consent(people, id);
      await people.owner.json("POST", `/mcp-servers/${id}/refresh`);
    }
    return outcomes;
  } finally {
    // Closes the connections to it, which the suite waits for.
    await people.owner.json("DELETE", `/mcp-servers/${id}`);
  }
}
