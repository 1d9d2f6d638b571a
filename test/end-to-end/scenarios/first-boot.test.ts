import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { endpoints } from "../../../src/endpoints/index.ts";
import { pathsOf } from "../../../src/http/endpoint.ts";
import { isNightly } from "../../support/nightly.ts";
import { servedPath } from "../../support/served-path.ts";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatRequest } from "./support/scene.ts";

let gateway: TestGateway;
let upstream: FaultUpstream;
async function stop(): Promise<void> {
  await gateway.stop();
  upstream.stop();
}

/** A gateway on an empty database whose operator has configured a provider and nothing else. */
async function firstBoot(): Promise<string> {
  upstream = await startFaultUpstream();
  gateway = await startGateway({
    trustProxy: true,
    providers: [acme(upstream.baseUrl, { models: [{ id: "acme/tiny:free" }] })],
    bootstrap: {
      llmKey: undefined,
      managementKey: undefined,
      creditsNanoUsd: undefined,
      plan: "enterprise",
    },
  });
  return (await gateway.app.mintFirstKey()) ?? "";
}

/** Credentials that the first boot of another gateway, or a careless one of ours, might accept. */
const guesses: readonly (readonly [name: string, headers: Record<string, string>])[] = [
  ["none", {}],
  ["empty", { authorization: "Bearer " }],
  ["only the word Bearer", { authorization: "Bearer" }],
  ["undefined", { authorization: "Bearer undefined" }],
  ["null", { authorization: "Bearer null" }],
  ["only the key prefix", { authorization: "Bearer sk-svc-v1-" }],
  ["only the management key prefix", { authorization: "Bearer ak_live_" }],
  ["a well-known default", { authorization: "Bearer sk-1234" }],
  ["a default password", { authorization: `Basic ${btoa("root:123456")}` }],
  ["an empty x-api-key", { "x-api-key": "" }],
  ["a made-up session cookie", { cookie: "__session=admin" }],
];

/** All but sockets, which are refused by their handshakes; test/end-to-end/sockets sends those. */
const protectedEndpoints = endpoints.filter(
  ({ access, socket }) => !access.open && !access.anonymous && socket === undefined,
);

/**
 * The paths of an endpoint that a guess asks: all of them nightly, and by day one, so that the
 * guesses ask every path in turn.
 */
function pathsFor(endpoint: (typeof endpoints)[number], turn: number): readonly string[] {
  const paths = pathsOf(endpoint);
  return isNightly ? paths : paths.slice(turn % paths.length, (turn % paths.length) + 1);
}

describe("on a first start every protected endpoint needs a credential", () => {
  beforeAll(async () => {
    await firstBoot();
  });
  afterAll(stop);

  let asked = 0;
  for (const [place, [name, headers]] of guesses.entries()) {
    test(`credential: ${name}`, async () => {
      for (const [turn, endpoint] of protectedEndpoints.entries()) {
        for (const path of pathsFor(endpoint, place + turn)) {
          const url = gateway.origin + servedPath(endpoint, path);
          asked += 1;
          const response = await fetch(url, {
            method: endpoint.method,
            // Of many addresses: refusals of one are counted, and answered with 429 in the end.
            headers: {
              ...headers,
              "x-forwarded-for": `198.51.${Math.floor(asked / 25_600)}.${Math.floor(asked / 100) % 256}`,
            },
            ...(endpoint.method === "GET" ? {} : { body: "{}" }),
          });
          expect([endpoint.method, path, response.status]).toEqual([endpoint.method, path, 401]);
        }
      }
      expect(upstream.requests.length).toBe(0);
    });
  }
});

describe("on a first start", () => {
  afterEach(stop);

  test("only the printed key allows inference, and it does not allow administration", async () => {
    const secret = await firstBoot();
    const headers = { authorization: `Bearer ${secret}` };
    expect(secret).toStartWith("sk-svc-v1-");
    expect(
      (
        await gateway.post("/chat/completions", chatRequest({ model: "acme/tiny:free" }), {
          headers,
        })
      ).status,
    ).toBe(200);
    for (const changed of [
      secret.slice(0, -1),
      `${secret}x`,
      secret.toUpperCase(),
      `${secret.slice(0, -1)}${secret.endsWith("a") ? "b" : "a"}`,
    ]) {
      expect((await gateway.get("/credits", { authorization: `Bearer ${changed}` })).status).toBe(
        401,
      );
    }
    expect((await gateway.post("/keys", { name: "k" }, { headers })).status).toBe(401);
  });

  test("two first starts print different keys", async () => {
    const first = await firstBoot();
    await stop();
    expect(await firstBoot()).not.toBe(first);
  });

  test("no workspace has credits", async () => {
    const secret = await firstBoot();
    expect(
      await (await gateway.get("/credits", { authorization: `Bearer ${secret}` })).json(),
    ).toMatchObject({ balance: 0, used: 0 });
  });
});
