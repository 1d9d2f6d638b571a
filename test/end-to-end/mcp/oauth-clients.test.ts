import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  auth as modernAuth,
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
  type OAuthClientProvider as ModernProvider,
} from "@modelcontextprotocol/client";
import { auth, type OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { jsonSchemaValidator } from "../../support/kept-validators.ts";
import { createAuthority } from "../../support/certificates.ts";
import { type PeopledGateway, startAtOrigin } from "../api/people-browser.ts";
import { engines } from "../api/two-workspaces.ts";
import { callback, decideAt, placeOf } from "../consent/flows.ts";

const who = { name: "test", version: "1" };

/**
 * What a program keeps between two runs of its MCP client, in the manner of the SDKs' own examples.
 */
class Keeper {
  readonly redirectUrl = callback;
  readonly clientMetadata = {
    client_name: "An MCP client",
    redirect_uris: [callback],
    token_endpoint_auth_method: "none",
  };
  readonly clientMetadataUrl?: string;
  private readonly kept = new Map<string, unknown>();
  asked: URL | undefined;

  constructor(clientMetadataUrl?: string) {
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl;
  }

  readonly state = (): string => "the state";
  readonly clientInformation = () => this.kept.get("client") as { client_id: string } | undefined;
  readonly saveClientInformation = (information: unknown): void =>
    void this.kept.set("client", information);
  readonly tokens = () =>
    this.kept.get("tokens") as
      | { access_token: string; token_type: string; refresh_token?: string }
      | undefined;
  readonly saveTokens = (tokens: unknown): void => void this.kept.set("tokens", tokens);
  readonly redirectToAuthorization = (url: URL): void => void (this.asked = url);
  readonly codeVerifier = (): string => String(this.kept.get("verifier"));
  readonly saveCodeVerifier = (verifier: string): void => void this.kept.set("verifier", verifier);
  readonly discoveryState = () => this.kept.get("discovery") as never;
  readonly saveDiscoveryState = (state: unknown): void => void this.kept.set("discovery", state);
}

interface Generation {
  /** Begins: either the browser is needed, or there is a token. */
  begin(serverUrl: string, keeper: Keeper): Promise<string>;
  /** Goes on with what came back to the app. */
  finish(serverUrl: string, keeper: Keeper, back: URL): Promise<void>;
  names(serverUrl: string, keeper: Keeper): Promise<string[]>;
}

const generations: Record<string, Generation> = {
  "SDK 1.x": {
    begin: (serverUrl, keeper) => auth(keeper as OAuthClientProvider, { serverUrl }),
    async finish(serverUrl, keeper, back) {
      const transport = new StreamableHTTPClientTransport(new URL(serverUrl), {
        authProvider: keeper as OAuthClientProvider,
      });
      await transport.finishAuth(back.searchParams.get("code") ?? "");
    },
    async names(serverUrl, keeper) {
      const client = new Client(who, { jsonSchemaValidator });
      const transport = new StreamableHTTPClientTransport(new URL(serverUrl), {
        authProvider: keeper as OAuthClientProvider,
      });
      await client.connect(transport as Parameters<Client["connect"]>[0]);
      const { tools } = await client.listTools();
      await client.close();
      return tools.map(({ name }) => name);
    },
  },
  "SDK 2.x": {
    begin: (serverUrl, keeper) => modernAuth(keeper as ModernProvider, { serverUrl }),
    async finish(serverUrl, keeper, back) {
      await new ModernTransport(new URL(serverUrl), {
        authProvider: keeper as ModernProvider,
      }).finishAuth(back.searchParams);
    },
    async names(serverUrl, keeper) {
      const client = new ModernClient(who);
      await client.connect(
        new ModernTransport(new URL(serverUrl), { authProvider: keeper as ModernProvider }),
      );
      const { tools } = await client.listTools();
      await client.close();
      return tools.map(({ name }) => name);
    },
  },
};

describe.each(engines)("MCP clients that discover authorization, on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  let publisher: Bun.Server<undefined>;
  beforeAll(async () => {
    const authority = createAuthority();
    publisher = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: authority.issue("127.0.0.1"),
      fetch: (request) =>
        Response.json({
          client_id: request.url,
          client_name: "Published",
          redirect_uris: [callback],
        }),
    });
    const settings = {
      clientDocumentNetworks: ["127.0.0.0/8"],
      extraCertificates: [authority.cert],
    };
    people = await startAtOrigin(await freshUrl(), settings);
  }, 240_000);
  afterAll(async () => {
    await people.stop();
    await publisher.stop(true);
  });

  const cases = Object.entries(generations).flatMap(([name, generation]) =>
    ["/mcp", "/api/v1/mcp"].flatMap((path) =>
      ["registering", "a description of its own"].map(
        (way) => [name, path, way, generation] as const,
      ),
    ),
  );

  test.each(cases)("%s lists the tools of %s, %s", async (_name, path, way, generation) => {
    const serverUrl = people.gateway().origin + path;
    const document = `https://127.0.0.1:${publisher.port}/client.json`;
    const keeper = new Keeper(way === "registering" ? undefined : document);
    expect(await generation.begin(serverUrl, keeper)).toBe("REDIRECT");
    const { pathname, search, searchParams } = keeper.asked ?? new URL(serverUrl);
    expect([searchParams.get("resource"), searchParams.get("client_id") === document]).toEqual([
      serverUrl,
      way !== "registering",
    ]);
    await generation.finish(
      serverUrl,
      keeper,
      placeOf(await decideAt(people.owner, pathname + search)),
    );
    const names = await generation.names(serverUrl, keeper);
    expect(names).toContain("get_credits");
    // With a refresh token there is no need for the browser a second time.
    const before = keeper.tokens()?.access_token;
    expect(await generation.begin(serverUrl, keeper)).toBe("AUTHORIZED");
    expect(keeper.tokens()?.access_token).not.toBe(before);
    expect(await generation.names(serverUrl, keeper)).toEqual(names);
  });
});
