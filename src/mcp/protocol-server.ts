import type { McpHttpHandler, McpServer, Server } from "@modelcontextprotocol/server";
import { lazily } from "../platform/kernel/keyed-mutex.ts";
import {
  capabilitiesIn,
  ClientQuestions,
  introduce,
  sessionHeader,
  sessionOf,
} from "./client-questions.ts";
import type { McpSdk } from "./tool.ts";

/** Builds the server that answers one request. */
export type BuildServer<Served> = (sdk: McpSdk, served: Served) => Server | McpServer;

interface Loaded<Served> {
  sdk: McpSdk;
  modern: McpHttpHandler;
  build: BuildServer<Served>;
}

/**
 * Answers requests of the protocol over HTTP, without sessions, so that any gateway answers any
 * request, in both generations of the protocol. Each request has a server of its own.
 */
export class ProtocolServer<Served extends object> {
  private readonly loaded: () => Promise<Loaded<Served>>;
  private readonly streams: boolean;
  /** The requests being served, by the object that the SDK passes through. */
  private readonly served = new WeakMap<object, Served>();
  private modern: McpHttpHandler | undefined;
  private readonly asked = new ClientQuestions();

  /**
   * `load` is called by the first request. `streams` answers requests of the older generation with
   * events, so that notifications reach the client before the result.
   */
  constructor({
    load,
    streams = false,
  }: {
    load: () => Promise<BuildServer<Served>>;
    streams?: boolean;
  }) {
    this.streams = streams;
    this.loaded = lazily(() => this.load(load));
  }

  /** Answers one HTTP request, whose body was read and parsed. */
  async answer(
    request: Request,
    { parsedBody, clientId, served }: { parsedBody: unknown; clientId: string; served: Served },
  ): Promise<Response> {
    const { sdk, modern, build } = await this.loaded();
    const authInfo = { token: "", clientId, scopes: [] };
    this.served.set(authInfo, served);
    if (!(await sdk.isLegacyRequest(request, parsedBody)))
      return modern.fetch(request, { authInfo, parsedBody });
    if (this.streams && this.asked.deliver(clientId, parsedBody))
      return new Response(null, { status: 202 });
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({
      enableJsonResponse: !this.streams,
    });
    const capabilities = capabilitiesIn(request.headers.get(sessionHeader));
    if (this.streams) this.asked.watch(transport, { clientId, signal: request.signal });
    await build(sdk, { ...served, capabilities }).connect(transport);
    if (capabilities !== undefined) await introduce(transport, { request, capabilities });
    const response = await transport.handleRequest(request, { authInfo, parsedBody });
    const session = this.streams ? sessionOf(parsedBody) : undefined;
    if (session !== undefined) response.headers.set(sessionHeader, session);
    return response;
  }

  /** Ends open streams. */
  async close(): Promise<void> {
    await this.modern?.close();
  }

  private async load(load: () => Promise<BuildServer<Served>>): Promise<Loaded<Served>> {
    const [sdk, build] = await Promise.all([import("@modelcontextprotocol/server"), load()]);
    const modern = sdk.createMcpHandler(({ authInfo }) => build(sdk, this.servedBy(authInfo)), {
      legacy: "reject",
    });
    this.modern = modern;
    return { sdk, modern, build };
  }

  private servedBy(authInfo: object | undefined): Served {
    const served = authInfo && this.served.get(authInfo);
    if (served === undefined) throw new Error("a request of the protocol has no caller");
    return served;
  }
}
