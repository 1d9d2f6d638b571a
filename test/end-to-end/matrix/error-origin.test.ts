import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { createKey } from "../scenarios/support/create-key.ts";
import { whileRefusing } from "../scenarios/support/refusing-database.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import type { ClientDialect } from "./support/client-dialect.ts";
import { fieldsOf } from "./support/json-value.ts";
import { model, providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { clients } from "./support/pairs.ts";
import { readReply, type Reply } from "./support/reply.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
  scene.upstreams["openai-chat"].script(json(wireOf("openai-chat").whole));
});
afterAll(() => scene.end());

const post = async (client: ClientDialect, body: unknown, secret = testLlmKey): Promise<Reply> =>
  readReply(
    client,
    await scene.gateway.post(client.path, body, { headers: { authorization: `Bearer ${secret}` } }),
  );

const good = (client: ClientDialect): Record<string, unknown> => ({
  model,
  ...client.ask("Hello"),
  provider: { only: [providerId("openai-chat")] },
});

/** A refusal of the gateway's own, with the type that Anthropic's clients know it by. */
interface Refusal {
  what: string;
  status: number;
  code: string;
  /** Where the contract has another code on Messages. */
  anthropicCode?: string;
  fault: "client" | "gateway";
  anthropicType: string;
  ask(client: ClientDialect): Promise<Reply>;
}

const refusals: readonly Refusal[] = [
  {
    what: "a body that is no request",
    status: 400,
    code: "bad_request",
    fault: "client",
    anthropicType: "invalid_request_error",
    ask: (client) => post(client, { ...good(client), messages: 5, input: 5 }),
  },
  {
    what: "a body that is no JSON",
    status: 400,
    code: "bad_request",
    fault: "client",
    anthropicType: "invalid_request_error",
    ask: (client) => post(client, '{"model":'),
  },
  {
    what: "an unknown key",
    status: 401,
    code: "invalid_api_key",
    fault: "client",
    anthropicType: "authentication_error",
    ask: (client) => post(client, good(client), "sk-svc-v1-unknown"),
  },
  {
    what: "a management key",
    status: 401,
    code: "unauthorized",
    fault: "client",
    anthropicType: "authentication_error",
    ask: (client) => post(client, good(client), testManagementKey),
  },
  {
    what: "a key at its limit",
    status: 402,
    code: "insufficient_balance",
    fault: "client",
    anthropicType: "billing_error",
    ask: async (client) => post(client, good(client), await createKey(scene.gateway, { limit: 0 })),
  },
  {
    what: "a key without the model",
    status: 403,
    code: "forbidden",
    fault: "client",
    anthropicType: "permission_error",
    ask: async (client) =>
      post(client, good(client), await createKey(scene.gateway, { allowed_models: ["a/b"] })),
  },
  {
    what: "a key without the endpoint",
    status: 403,
    code: "insufficient_scope",
    fault: "client",
    anthropicType: "permission_error",
    ask: async (client) =>
      post(
        client,
        good(client),
        await createKey(scene.gateway, { allowed_endpoints: ["/embeddings"] }),
      ),
  },
  {
    what: "an unknown model",
    status: 404,
    code: "model_unavailable",
    fault: "client",
    anthropicType: "not_found_error",
    anthropicCode: "no_upstream",
    ask: (client) => post(client, { ...good(client), model: "acme/none" }),
  },
  {
    what: "an unknown model of somebody unknown",
    status: 404,
    code: "model_unavailable",
    fault: "client",
    anthropicType: "not_found_error",
    anthropicCode: "unknown_provider",
    ask: (client) => post(client, { ...good(client), model: "nobody/none" }),
  },
  {
    what: "a body that is too large",
    status: 413,
    code: "content_too_large",
    fault: "client",
    anthropicType: "request_too_large",
    ask: (client) => post(client, { ...good(client), filler: "x".repeat(33 * 1024 * 1024) }),
  },
  {
    what: "a key at its rate",
    status: 429,
    code: "rate_limit_exceeded",
    fault: "client",
    anthropicType: "rate_limit_error",
    async ask(client) {
      const secret = await createKey(scene.gateway, { rate_limit: 1 });
      await post(client, good(client), secret);
      return post(client, good(client), secret);
    },
  },
  {
    what: "a database that refuses",
    status: 503,
    code: "service_unavailable",
    fault: "gateway",
    anthropicType: "api_error",
    ask: (client) => whileRefusing(scene.gateway, () => post(client, good(client))),
  },
  {
    what: "another method",
    status: 405,
    code: "method_not_allowed",
    fault: "client",
    anthropicType: "invalid_request_error",
    ask: async (client) =>
      readReply(
        client,
        await fetch(scene.gateway.baseUrl + client.path, {
          method: "PUT",
          headers: { authorization: `Bearer ${testLlmKey}` },
          body: "{}",
        }),
      ),
  },
  {
    what: "a path below it that is not there",
    status: 404,
    code: "not_found",
    fault: "client",
    anthropicType: "not_found_error",
    ask: async (client) =>
      readReply(client, await scene.gateway.post(`${client.path}/none/at/all`, {})),
  },
];

/** The provider's own refusals stand in the fault table. */
describe("R15 and C86, an error names who refused the request, in the client's dialect", () => {
  for (const { what, ask, ...told } of refusals) {
    test.each(clients.map((client) => [client.name, client] as const))(
      `${what}: %s`,
      async (name, client) => {
        const reply = await ask(client);
        const [error] = reply.errors;
        const code = name === "anthropic-messages" ? (told.anthropicCode ?? told.code) : told.code;
        expect([reply.status, error?.code, error?.metadata.fault]).toEqual([
          told.status,
          code,
          told.fault,
        ]);
        expect([reply.breaches, error?.metadata.upstream_backend]).toEqual([[], undefined]);
        expect(reply.headers.get("content-type")).toStartWith("application/json");
        expect(reply.headers.get("x-request-id")).toMatch(/^[0-9a-f]{32}$/);
        if (name === "anthropic-messages")
          expect(fieldsOf(reply.body.error).type).toBe(told.anthropicType);
      },
    );
  }
});
