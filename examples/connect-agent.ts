// Connects an agent to the MCP server with OAuth: the SDK discovers the gateway, registers itself
// and keeps the tokens.
import {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError,
  type OAuthClientInformationMixed,
  type OAuthClientProvider,
  type OAuthTokens,
} from "@modelcontextprotocol/client";

const gateway = process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787";
const { promise: answered, resolve } = Promise.withResolvers<URLSearchParams>();
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    resolve(new URL(request.url).searchParams);
    return new Response("You can close this page.");
  },
});

/** Keeps what it is given for as long as the program runs; a real agent writes it to its disk. */
class InMemory implements OAuthClientProvider {
  readonly redirectUrl = `http://127.0.0.1:${server.port}/callback`;
  readonly clientMetadata = { client_name: "Example agent", redirect_uris: [this.redirectUrl] };
  private client: OAuthClientInformationMixed | undefined;
  private kept: OAuthTokens | undefined;
  private verifier = "";
  clientInformation = () => this.client;
  saveClientInformation = (client: OAuthClientInformationMixed) => void (this.client = client);
  tokens = () => this.kept;
  saveTokens = (tokens: OAuthTokens) => void (this.kept = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier: string) => void (this.verifier = verifier);
  redirectToAuthorization = (page: URL) => console.log(`Open ${page.href}`);
}

const authProvider = new InMemory();
const open = () => new StreamableHTTPClientTransport(new URL("/mcp", gateway), { authProvider });
const client = new Client({ name: "example-agent", version: "1.0.0" });
const first = open();
try {
  await client.connect(first);
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
  await first.finishAuth(await answered);
  await client.connect(open());
}
await server.stop();

const { tools } = await client.listTools();
console.log(`tools: ${tools.map(({ name }) => name).join(", ")}`);
const credits = await client.callTool({ name: "get_credits", arguments: {} });
console.log(`credits: ${JSON.stringify(credits.structuredContent)}`);
await client.close();
