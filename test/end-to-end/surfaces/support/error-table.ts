import { expect, test } from "bun:test";
import { testLlmKey, testManagementKey, type TestGateway } from "../../../support/gateway.ts";
import { cut, json, stall, type Script } from "../../../support/upstream/steps.ts";
import { createKey } from "../../scenarios/support/create-key.ts";
import type { Scene } from "../../scenarios/support/scene.ts";
import { inOrder, startSurfaceScene, type SurfaceSceneOptions } from "./surface-scene.ts";

/**
 * One way to an error: status, code and `metadata.type` of the answer, how it is reached in words,
 * and how in fact.
 */
export type ErrorRow = readonly [
  status: number,
  code: string,
  type: string,
  how: string,
  reach: () => Promise<Response>,
];

interface Envelope {
  error: {
    code: string;
    message: string;
    type: string;
    param: string | null;
    metadata: { type: string; fault: string };
  };
}

async function expectError(response: Response, [status, code, type]: ErrorRow): Promise<void> {
  const { error } = (await response.json()) as Envelope;
  expect([response.status, error.code, error.metadata.type]).toEqual([status, code, type]);
  expect(error.message.length).toBeGreaterThan(10);
  expect(["client", "gateway", "upstream"]).toContain(error.metadata.fault);
  expect(response.headers.get("x-service-trace-id")).toBe(response.headers.get("x-request-id"));
}

/**
 * Tests one row after the other, and that each of the contract's codes for the surface (`502
 * upstream_error`) has a row.
 */
export function errorTable(contract: readonly string[], rows: readonly ErrorRow[]): void {
  test.each(rows.map((row) => [row[0], row[1], row[3], row] as const))(
    "%i %s: %s",
    async (_, __, ___, row) => {
      await expectError(await row[4](), row);
    },
  );

  test("every code of the contract is reached", () => {
    const reached = new Set(rows.map(([status, code]) => `${status} ${code}`));
    expect(contract.filter((entry) => !reached.has(entry))).toEqual([]);
  });
}

/** What is sent in a request that would be served. */
interface Request {
  path: string;
  body: unknown;
}

const atAcme = { "x-service-provider": "acme" };

/**
 * Ways to send changed requests, and requests whose first provider does something; the second one
 * always fails.
 */
export const asking = (sceneOf: () => Scene, { path, body }: { path: string; body: object }) => {
  const ask =
    (changes: object | string, headers: Record<string, string> = {}) =>
    () =>
      sceneOf().gateway.post(
        path,
        typeof changes === "string" ? changes : { ...body, ...changes },
        { headers: { "gw-skip-cache": "true", ...headers } },
      );
  return {
    ask,
    whenAcme:
      (script: Script, headers: Record<string, string> = atAcme) =>
      () => {
        sceneOf().acme.script(script);
        sceneOf().backup.script(json({}, { status: 503 }));
        return ask({}, headers)();
      },
  };
};

/** Asks a gateway of other settings than the usual ones. */
async function askElsewhere(
  options: SurfaceSceneOptions,
  ask: (gateway: TestGateway) => Promise<Response>,
): Promise<Response> {
  const scene = await startSurfaceScene(options);
  try {
    const response = await ask(scene.gateway);
    return new Response(await response.text(), response);
  } finally {
    await scene.end();
  }
}

const bootstrap = {
  llmKey: testLlmKey,
  managementKey: testManagementKey,
  creditsNanoUsd: 10_000_000_000n,
  plan: "enterprise",
} as const;

/** A request in a workspace whose credits are spent. */
export const withoutCredits = ({ path, body }: Request): Promise<Response> =>
  askElsewhere({ settings: { bootstrap: { ...bootstrap, creditsNanoUsd: 0n } } }, (gateway) =>
    gateway.post(path, body),
  );

/** One request more than the plan has in a minute. */
export const aboveTheWindow = ({ path, body }: Request): Promise<Response> =>
  askElsewhere({ settings: { plans: { enterprise: { perMinute: 1 } } } }, async (gateway) => {
    await gateway.post(path, body);
    return gateway.post(path, body);
  });

/** A request with a key that is limited in some way. */
export const withKeyOf = (
  gateway: TestGateway,
  { path, body, fields }: Request & { fields: Record<string, unknown> },
): Promise<Response> =>
  createKey(gateway, fields).then((key) =>
    gateway.post(path, body, { headers: { authorization: `Bearer ${key}` } }),
  );

/** Rows for the failures of a provider that every surface reports alike. */
export const providerFailures = (
  whenAcme: ReturnType<typeof asking>["whenAcme"],
): readonly ErrorRow[] => {
  const upstreamError = [502, "upstream_error", "upstream_error"] as const;
  return [
    [
      429,
      "rate_limit_exceeded",
      "rate_limit_error",
      "the provider's own 429",
      whenAcme(json({ message: "slow down" }, { status: 429 })),
    ],
    [...upstreamError, "the provider's 500", whenAcme(json({}, { status: 500 }))],
    [...upstreamError, "a connection that is cut", whenAcme([cut()])],
    [
      502,
      "upstream_401",
      "upstream_error",
      "the provider's 401",
      whenAcme(json({}, { status: 401 })),
    ],
    [
      502,
      "upstream_exhausted",
      "upstream_error",
      "both providers fail",
      whenAcme(json({}, { status: 500 }), inOrder.headers),
    ],
    [
      504,
      "upstream_timeout",
      "upstream_timeout",
      "a provider that says nothing",
      whenAcme([stall()]),
    ],
  ];
};

/** What every surface answers to credentials that are none of its own. */
export const wrongCredentials = (
  gatewayOf: () => TestGateway,
  { path, body }: Request,
): readonly ErrorRow[] => {
  const ask = (headers: Record<string, string>) => () =>
    fetch(gatewayOf().baseUrl + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const bearer = (secret: string) => ask({ authorization: `Bearer ${secret}` });
  return [
    [401, "missing_api_key", "authentication_error", "without a credential", ask({})],
    [
      401,
      "invalid_api_key",
      "authentication_error",
      "with a key that nobody has",
      bearer("sk-svc-v1-nobodynobodynobodynobodynobodynobo"),
    ],
    [
      401,
      "unauthorized",
      "authentication_error",
      "with a management key",
      bearer(testManagementKey),
    ],
    [
      403,
      "insufficient_scope",
      "permission_error",
      "with a key of other endpoints",
      () =>
        withKeyOf(gatewayOf(), {
          path,
          body,
          fields: { allowed_endpoints: ["/chat/completions"] },
        }),
    ],
  ];
};
