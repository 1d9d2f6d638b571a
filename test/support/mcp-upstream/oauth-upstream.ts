import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { createHash } from "node:crypto";

/** An MCP server with an authorization server of its own, whose only tool names the token's person. */
export interface OauthUpstream {
  url: string;
  /** Consents as a person, as a browser at an authorization URL would; returns where it leads back. */
  consent(authorizationUrl: string, person: string): string;
  /** Ends every access token, so that each has to be refreshed. */
  expireTokens(): void;
  /** Ends every token of a person for good. */
  revoke(person: string): void;
  /** The number of refreshes, and of refresh tokens that were used twice. */
  readonly refreshes: number;
  readonly reused: number;
  /** The people whose tokens a client has revoked. */
  readonly revoked: readonly string[];
  stop(): Promise<void>;
}

const metadataOf = (origin: string) => ({
  issuer: origin,
  authorization_endpoint: `${origin}/authorize`,
  token_endpoint: `${origin}/token`,
  registration_endpoint: `${origin}/register`,
  revocation_endpoint: `${origin}/revoke`,
  response_types_supported: ["code"],
  code_challenge_methods_supported: ["S256"],
  token_endpoint_auth_methods_supported: ["none"],
});

/** Returns the MCP server, whose tool names the person of the token that the request has. */
const whoamiServer = (access: ReadonlyMap<string, string>) =>
  createMcpHandler(({ requestInfo }) => {
    const bearer = requestInfo?.headers.get("authorization")?.slice("Bearer ".length) ?? "";
    const server = new Server({ name: "whoami", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({
      tools: [{ name: "whoami", inputSchema: { type: "object" as const } }],
    }));
    server.setRequestHandler("tools/call", () => ({
      content: [{ type: "text" as const, text: `you are ${access.get(bearer)}` }],
    }));
    return server;
  });

/** The tokens of the authorization server, by which it knows its people. Refresh tokens rotate. */
class IssuedTokens {
  readonly access = new Map<string, string>();
  refreshes = 0;
  reused = 0;
  readonly revoked: string[] = [];
  private readonly codes = new Map<string, { person: string; challenge: string }>();
  private readonly refresh = new Map<string, string>();
  private readonly used = new Set<string>();

  /** Returns a code for a person who consented. */
  codeFor(person: string, challenge: string): string {
    const code = crypto.randomUUID();
    this.codes.set(code, { person, challenge });
    return code;
  }

  /** Answers a request to the token endpoint. */
  async answer(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text());
    if (form.get("grant_type") === "authorization_code") {
      const code = this.codes.get(form.get("code") ?? "");
      this.codes.delete(form.get("code") ?? "");
      const verifier = form.get("code_verifier") ?? "";
      const challenge = createHash("sha256").update(verifier).digest("base64url");
      return this.issued(code?.challenge === challenge ? code.person : undefined);
    }
    const old = form.get("refresh_token") ?? "";
    if (this.used.has(old)) this.reused += 1;
    const person = this.refresh.get(old);
    this.refresh.delete(old);
    if (person !== undefined) this.refreshes += 1;
    this.used.add(old);
    return this.issued(person);
  }

  /** Takes a client's revocation (RFC 7009). */
  async takeRevocation(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text());
    const person = this.refresh.get(form.get("token") ?? "");
    if (person !== undefined) this.revoked.push(person);
    if (person !== undefined) this.revoke(person);
    return new Response(null);
  }

  /** Ends every token of a person. */
  revoke(person: string): void {
    for (const tokens of [this.access, this.refresh])
      for (const [key, holder] of tokens) if (holder === person) tokens.delete(key);
  }

  private issued(person: string | undefined): Response {
    if (person === undefined) return Response.json({ error: "invalid_grant" }, { status: 400 });
    const tokens = { access_token: crypto.randomUUID(), refresh_token: crypto.randomUUID() };
    this.access.set(tokens.access_token, person);
    this.refresh.set(tokens.refresh_token, person);
    return Response.json({ ...tokens, token_type: "Bearer", expires_in: 3600 });
  }
}

/** Starts one. Refresh tokens rotate, and the reuse of one is counted. */
export function startOauthUpstream(): OauthUpstream {
  const tokens = new IssuedTokens();
  let origin = "";
  const mcp = whoamiServer(tokens.access);
  const answer = (request: Request): Response | Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/.well-known/oauth-protected-resource"))
      return Response.json({ resource: `${origin}/mcp`, authorization_servers: [origin] });
    if (pathname.startsWith("/.well-known/")) return Response.json(metadataOf(origin));
    if (pathname === "/register")
      return request
        .json()
        .then((client: unknown) =>
          Response.json({ ...Object(client), client_id: "registered" }, { status: 201 }),
        );
    if (pathname === "/token") return tokens.answer(request);
    if (pathname === "/revoke") return tokens.takeRevocation(request);
    const bearer = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
    return tokens.access.has(bearer)
      ? mcp.fetch(request)
      : new Response(null, { status: 401, headers: { "www-authenticate": "Bearer" } });
  };
  const listening = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  origin = `http://127.0.0.1:${listening.port}`;
  return {
    url: `${origin}/mcp`,
    get refreshes() {
      return tokens.refreshes;
    },
    get reused() {
      return tokens.reused;
    },
    revoked: tokens.revoked,
    consent(authorizationUrl, person) {
      const { searchParams } = new URL(authorizationUrl);
      const back = new URL(searchParams.get("redirect_uri") ?? "");
      const challenge = searchParams.get("code_challenge") ?? "";
      back.searchParams.set("code", tokens.codeFor(person, challenge));
      back.searchParams.set("state", searchParams.get("state") ?? "");
      return back.pathname + back.search;
    },
    expireTokens: () => tokens.access.clear(),
    revoke: (person) => tokens.revoke(person),
    async stop() {
      await mcp.close();
      await listening.stop(true);
    },
  };
}
