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
  refreshes: number;
  reused: number;
  stop(): Promise<void>;
}

const metadataOf = (origin: string) => ({
  issuer: origin,
  authorization_endpoint: `${origin}/authorize`,
  token_endpoint: `${origin}/token`,
  registration_endpoint: `${origin}/register`,
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

/** Starts one. Refresh tokens rotate, and the reuse of one is counted. */
export function startOauthUpstream(): OauthUpstream {
  const codes = new Map<string, { person: string; challenge: string; redirect: string }>();
  const access = new Map<string, string>();
  const refresh = new Map<string, string>();
  const used = new Set<string>();
  let origin = "";
  const issue = (person: string) => {
    const accessToken = crypto.randomUUID();
    const refreshToken = crypto.randomUUID();
    access.set(accessToken, person);
    refresh.set(refreshToken, person);
    return Response.json({
      access_token: accessToken,
      refresh_token: refreshToken,
      token_type: "Bearer",
      expires_in: 3600,
    });
  };
  const refused = () => Response.json({ error: "invalid_grant" }, { status: 400 });
  const token = async (request: Request): Promise<Response> => {
    const form = new URLSearchParams(await request.text());
    if (form.get("grant_type") === "authorization_code") {
      const code = codes.get(form.get("code") ?? "");
      codes.delete(form.get("code") ?? "");
      const verifier = form.get("code_verifier") ?? "";
      const challenge = createHash("sha256").update(verifier).digest("base64url");
      return code?.challenge === challenge ? issue(code.person) : refused();
    }
    const old = form.get("refresh_token") ?? "";
    if (used.has(old)) upstream.reused += 1;
    const person = refresh.get(old);
    if (person === undefined) return refused();
    refresh.delete(old);
    used.add(old);
    upstream.refreshes += 1;
    return issue(person);
  };
  const mcp = whoamiServer(access);
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
    if (pathname === "/token") return token(request);
    const bearer = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
    return access.has(bearer)
      ? mcp.fetch(request)
      : new Response(null, { status: 401, headers: { "www-authenticate": "Bearer" } });
  };
  const listening = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  origin = `http://127.0.0.1:${listening.port}`;
  const upstream: OauthUpstream = {
    url: `${origin}/mcp`,
    refreshes: 0,
    reused: 0,
    consent(authorizationUrl, person) {
      const { searchParams } = new URL(authorizationUrl);
      const code = crypto.randomUUID();
      const redirect = searchParams.get("redirect_uri") ?? "";
      codes.set(code, { person, redirect, challenge: searchParams.get("code_challenge") ?? "" });
      const back = new URL(redirect);
      back.searchParams.set("code", code);
      back.searchParams.set("state", searchParams.get("state") ?? "");
      return back.pathname + back.search;
    },
    expireTokens: () => access.clear(),
    revoke(person) {
      for (const tokens of [access, refresh])
        for (const [key, holder] of tokens) if (holder === person) tokens.delete(key);
    },
    async stop() {
      await mcp.close();
      await listening.stop(true);
    },
  };
  return upstream;
}
