import type { McpHttpHandler, McpServer, Server } from "@modelcontextprotocol/server";
import { assert } from "../platform/kernel/assert.ts";
import { lazily } from "../platform/kernel/keyed-mutex.ts";
import type { ChangeStream } from "./change-stream.ts";
import {
  capabilitiesIn,
  ClientQuestions,
  introduce,
  isAnswer,
  sessionHeader,
  sessionOf,
} from "./client-questions.ts";
import type { McpSdk } from "./tool.ts";

/** Builds the server that answers one request. */
export type BuildServer<Served> = (sdk: McpSdk, served: Served) => Server | McpServer;

/**
 * Opens the stream on which a client hears that lists have changed; undefined where it may have no
 * more of them.
 */
type Subscribe<Served> = (served: Served) => ChangeStream | undefined;

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
  private readonly subscribe: Subscribe<Served> | undefined;
  /** Called with answers of clients to questions that this gateway did not ask. */
  passOn: ((clientId: string, body: unknown) => void) | undefined;
  private modern: McpHttpHandler | undefined;
  private readonly asked = new ClientQuestions();

  /**
   * `load` is called by the first request. `streams` answers requests of the older generation with
   * events, so that notifications reach the client before the result. Without `subscribe`, there
   * is nothing that clients could listen to.
   */
  constructor({
    load,
    streams = false,
    subscribe,
  }: {
    load: () => Promise<BuildServer<Served>>;
    streams?: boolean;
    subscribe?: Subscribe<Served>;
  }) {
    this.streams = streams;
    this.subscribe = subscribe;
    this.loaded = lazily(() => this.load(load));
  }

  /** Answers one HTTP request, whose body was read and parsed. */
  async answer(
    request: Request,
    { parsedBody, clientId, served }: { parsedBody: unknown; clientId: string; served: Served },
  ): Promise<Response> {
    const { sdk, modern, build } = await this.loaded();
    // What the SDK hands through to the server that is built for a request.
    const authInfo = { token: "", clientId, scopes: [], extra: { served } };
    if (!(await sdk.isLegacyRequest(request, parsedBody)))
      return this.subscribe !== undefined && isSubscription(parsedBody)
        ? this.listen(request, { parsedBody, served, subscribe: this.subscribe })
        : modern.fetch(request, { authInfo, parsedBody });
    if (this.streams && isAnswer(parsedBody)) {
      if (!this.asked.deliver(clientId, parsedBody)) this.passOn?.(clientId, parsedBody);
      return new Response(null, { status: 202 });
    }
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

  /** Takes the answer of a client that came to another gateway, and may answer a question of this one. */
  takeAnswer(clientId: string, body: unknown): void {
    this.asked.deliver(clientId, body);
  }

  /** Ends open streams. */
  async close(): Promise<void> {
    await this.modern?.close();
  }

  /** Answers `subscriptions/listen`. Each has a handler of its own, since each hears other changes. */
  private async listen(
    request: Request,
    {
      parsedBody,
      served,
      subscribe,
    }: { parsedBody: unknown; served: Served; subscribe: Subscribe<Served> },
  ): Promise<Response> {
    const { sdk, build } = await this.loaded();
    const stream = subscribe(served);
    let isOpen = false;
    const handler = sdk.createMcpHandler(() => build(sdk, served), {
      legacy: "reject",
      maxSubscriptions: stream === undefined ? 0 : 1,
      bus: {
        publish: () => undefined,
        subscribe(listener) {
          isOpen = true;
          stream?.attach({
            send: (kind) => listener({ kind: `${kind}_list_changed` }),
            end: () => void handler.close(),
          });
          return () => stream?.close();
        },
      },
    });
    const response = await handler.fetch(request, { parsedBody });
    if (!isOpen) stream?.close();
    return response;
  }

  private async load(load: () => Promise<BuildServer<Served>>): Promise<Loaded<Served>> {
    const [sdk, build] = await Promise.all([import("@modelcontextprotocol/server"), load()]);
    const modern = sdk.createMcpHandler(({ authInfo }) => build(sdk, servedBy(authInfo)), {
      legacy: "reject",
    });
    this.modern = modern;
    return { sdk, modern, build };
  }
}

/** Returns the request that `answer` handed to the SDK. */
function servedBy<Served extends object>(
  authInfo: { extra?: Record<string, unknown> } | undefined,
): Served {
  const served = authInfo?.extra?.["served"] as Served | undefined;
  assert(served !== undefined, "a request of the protocol has no caller");
  return served;
}

const isSubscription = (body: unknown): boolean =>
  (Object(body) as { method?: unknown }).method === "subscriptions/listen";
