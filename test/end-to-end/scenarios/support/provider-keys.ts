import type { ConfiguredProvider } from "../../../../src/inference/catalog/configured/configured-provider.ts";
import type { AppTools } from "../../../../src/app/app.ts";
import type { LlmKey } from "../../../../src/identity/keys/llm-key-store.ts";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../../support/gateway.ts";
import {
  type FaultUpstream,
  startFaultUpstream,
} from "../../../support/upstream/fault-upstream.ts";
import { bootstrapWith } from "../../api/bootstrap-with.ts";
import { chatRequest } from "../../api/chat-request.ts";
import { seedStorage } from "../../api/seed-storage.ts";
import { strangersKey } from "../../api/two-workspaces.ts";
import { textAt } from "../../api/at.ts";

/** Secret of an LLM key of the second workspace, which has no credits. */
export const strangersLlmKey = "sk-svc-v1-strangerstrangerstrangerstranger";

/** Secret of another LLM key of the first workspace, with the fields that a test sets. */
export const limitedLlmKey = "sk-svc-v1-limitedlimitedlimitedlimited12";

/** Two workspaces on a gateway over one upstream that sees with which key it is asked. */
export interface ProviderKeyScene {
  gateway: TestGateway;
  upstream: FaultUpstream;
  /**
   * Adds a provider key and gives its id; to the first workspace unless another management key is
   * named.
   */
  add(apiKey: string, fields?: Record<string, unknown>, as?: string): Promise<string>;
  /** Removes every provider key of a management key's workspace. */
  removeKeys(as: string): Promise<void>;
  /** A request of the account plane of the first workspace, or of another's management key. */
  manage(method: string, path: string, body?: unknown, as?: string): Promise<Response>;
  /**
   * A chat request for `acme/large` with some LLM key, the first workspace's unless another is
   * named.
   */
  chat(fields?: Record<string, unknown>, secret?: string): Promise<Response>;
  /** The record of a provider key as its owner sees it. */
  show(id: string, as?: string): Promise<unknown>;
  /** The keys that the upstream was asked with since this was called last. */
  keysSent(): (string | null)[];
  /** Ends the gateway and starts another on the same database. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const pricing = { prompt: "1000", completion: "1000" };

/**
 * `acme` and `backup` serve `acme/large`, with a platform credential; `solo` has none, and
 * `solo/bare` no price.
 */
const providersAt = (baseUrl: string): ConfiguredProvider[] => [
  ...["acme", "backup"].map((id) =>
    provider({
      id,
      base_url: baseUrl,
      api_key: `platform-key-of-${id}`,
      models: [{ id: "acme/large", upstream_model: id, pricing }],
    }),
  ),
  provider({
    id: "solo",
    base_url: baseUrl,
    models: [
      { id: "solo/large", pricing },
      { id: "solo/bare" },
      { id: "solo/vectors", surface: "embeddings", pricing },
    ],
  }),
];

/** How a gateway is asked with some secret, and for the provider keys of a management key. */
function requestsTo(baseUrl: () => string) {
  const send = (
    secret: string,
    { method, path, body }: { method: string; path: string; body?: unknown },
  ): Promise<Response> =>
    fetch(baseUrl() + path, {
      method,
      headers: { authorization: `Bearer ${secret}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const keysOf = async (as: string): Promise<{ id: string }[]> => {
    const list = (await (await send(as, { method: "GET", path: "/auth/byok" })).json()) as {
      data: { keys: { id: string }[] }[];
    };
    return list.data.flatMap(({ keys }) => keys);
  };
  return { send, keysOf };
}

/**
 * Starts the scene; each of its requests costs 0.018 USD at list price, with the upstream's default
 * answer of 11 and 7 tokens.
 */
export async function startProviderKeys(
  options: {
    limitedKey?: Partial<LlmKey>;
    creditsNanoUsd?: bigint;
    storageUrl?: string | undefined;
    tools?: Partial<AppTools>;
  } = {},
): Promise<ProviderKeyScene> {
  const upstream = await startFaultUpstream();
  const storage = await seedStorage(
    {
      workspaces: [{ id: "ws_own" }, { id: "ws_strange" }],
      llmKeys: [
        { secret: strangersLlmKey, workspaceId: "ws_strange" },
        { secret: limitedLlmKey, workspaceId: "ws_own", ...options.limitedKey },
      ],
      managementKeys: [{ secret: strangersKey, workspaceId: "ws_strange" }],
    },
    options.storageUrl,
  );
  const start = (): Promise<TestGateway> =>
    startGateway(
      {
        ...storage.settings,
        providers: providersAt(upstream.baseUrl),
        bootstrap: bootstrapWith(
          options.creditsNanoUsd === undefined ? {} : { creditsNanoUsd: options.creditsNanoUsd },
        ),
      },
      options.tools,
    );
  let gateway = await start();
  let seen = 0;
  const { send, keysOf } = requestsTo(() => gateway.baseUrl);
  const scene: ProviderKeyScene = {
    get gateway() {
      return gateway;
    },
    upstream,
    async add(apiKey, fields = {}, as = testManagementKey) {
      const response = await send(as, {
        method: "POST",
        path: "/auth/byok",
        body: { provider_id: "acme", api_key: apiKey, ...fields },
      });
      return textAt(await response.json(), "id");
    },
    manage: (method, path, body, as = testManagementKey) => send(as, { method, path, body }),
    chat: (fields = {}, secret = testLlmKey) =>
      send(secret, { method: "POST", path: "/chat/completions", body: chatRequest(fields) }),
    async show(id, as = testManagementKey) {
      return (await keysOf(as)).find((key) => key.id === id);
    },
    async removeKeys(as) {
      for (const { id } of await keysOf(as))
        await (await send(as, { method: "DELETE", path: `/auth/byok/keys/${id}` })).text();
    },
    keysSent() {
      const keys = upstream.requests
        .slice(seen)
        .map(({ headers }) => headers.get("authorization")?.replace(/^Bearer /, "") ?? null);
      seen = upstream.requests.length;
      return keys;
    },
    async restart() {
      await gateway.stop();
      gateway = await start();
    },
    async stop() {
      await gateway.stop();
      upstream.stop();
      storage.remove();
    },
  };
  return scene;
}
