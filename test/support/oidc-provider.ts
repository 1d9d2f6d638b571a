import { exportJWK, generateKeyPair, SignJWT } from "jose";

/** An OpenID provider on loopback that signs `person` in. */
export interface OidcTestProvider {
  issuer: string;
  /** The person who signs in at the next authorization. */
  person: { sub: string; email: string; emailVerified: boolean; name: string };
  /** The defect of its next ID token. */
  fault:
    | "none"
    | "foreign-signature"
    | "foreign-audience"
    | "foreign-nonce"
    | "foreign-issuer"
    | "no-id-token";
  /** Whether its metadata can be read. */
  up: boolean;
  stop(): Promise<void>;
}

/** Starts a provider that checks PKCE and the client's secret as a real one does. */
export async function startOidcProvider({
  clientId,
  clientSecret,
}: {
  clientId: string;
  clientSecret: string;
}): Promise<OidcTestProvider> {
  const [own, foreign] = await Promise.all([generateKeyPair("RS256"), generateKeyPair("RS256")]);
  const jwk = { ...(await exportJWK(own.publicKey)), kid: "test", alg: "RS256", use: "sig" };
  const grants = new Map<
    string,
    { challenge: string; nonce: string | null; redirectUri: string }
  >();
  const provider: OidcTestProvider = {
    issuer: "",
    person: { sub: "sub-1", email: "person@example.com", emailVerified: true, name: "Person" },
    fault: "none",
    up: true,
    stop: () => server.stop(true),
  };
  const idToken = (nonce: string | null): Promise<string> => {
    const { person, fault, issuer } = provider;
    const claims = {
      email: person.email,
      email_verified: person.emailVerified,
      name: person.name,
      nonce: fault === "foreign-nonce" ? "another" : nonce,
    };
    return new SignJWT(claims)
      .setProtectedHeader({ alg: "RS256", kid: "test" })
      .setSubject(person.sub)
      .setIssuedAt()
      .setExpirationTime("5m")
      .setIssuer(fault === "foreign-issuer" ? "https://elsewhere.example" : issuer)
      .setAudience(fault === "foreign-audience" ? "another" : clientId)
      .sign(fault === "foreign-signature" ? foreign.privateKey : own.privateKey);
  };
  const token = async (request: Pick<Request, "text" | "headers">): Promise<Response> => {
    const form = new URLSearchParams(await request.text());
    const grant = grants.get(form.get("code") ?? "");
    grants.delete(form.get("code") ?? "");
    const verifier = new Bun.CryptoHasher("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    const basic = `Basic ${btoa(`${clientId}:${clientSecret}`)}`;
    const proven =
      request.headers.get("authorization") === basic || form.get("client_secret") === clientSecret;
    if (
      grant === undefined ||
      grant.challenge !== verifier ||
      grant.redirectUri !== form.get("redirect_uri") ||
      !proven
    ) {
      return Response.json({ error: "invalid_grant" }, { status: 400 });
    }
    const granted = {
      access_token: "access-token-of-the-test",
      token_type: "Bearer",
      expires_in: 300,
    };
    if (provider.fault === "no-id-token") return Response.json(granted);
    return Response.json({ ...granted, id_token: await idToken(grant.nonce) });
  };
  const authorize = (query: URLSearchParams): Response => {
    const code = crypto.randomUUID();
    const redirectUri = query.get("redirect_uri") ?? "";
    grants.set(code, {
      challenge: query.get("code_challenge") ?? "",
      nonce: query.get("nonce"),
      redirectUri,
    });
    const location = `${redirectUri}?${new URLSearchParams({ code, state: query.get("state") ?? "" })}`;
    return new Response(null, { status: 302, headers: { location } });
  };
  const metadata = (): Response =>
    provider.up
      ? Response.json({
          issuer: provider.issuer,
          authorization_endpoint: `${provider.issuer}/authorize`,
          token_endpoint: `${provider.issuer}/token`,
          jwks_uri: `${provider.issuer}/keys`,
          userinfo_endpoint: `${provider.issuer}/profile`,
          id_token_signing_alg_values_supported: ["RS256"],
          response_types_supported: ["code"],
          subject_types_supported: ["public"],
        })
      : new Response("down", { status: 503 });
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: {
      "/.well-known/openid-configuration": metadata,
      "/authorize": ({ url }) => authorize(new URL(url).searchParams),
      "/token": token,
      "/profile": () => {
        const { sub, email, emailVerified, name } = provider.person;
        return Response.json({ sub, email, email_verified: emailVerified, name });
      },
      "/keys": () => Response.json({ keys: [jwk] }),
    },
  });
  provider.issuer = `http://127.0.0.1:${server.port}`;
  return provider;
}
