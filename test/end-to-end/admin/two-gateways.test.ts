import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { brand } from "../../../src/platform/kernel/brand.ts";
import { endProcesses, type GatewayProcess } from "../../support/process.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { textAt } from "../api/at.ts";
import { manage } from "../nodes/support/manage.ts";
import { startNodes, type Nodes } from "../nodes/support/nodes.ts";
import { until } from "../nodes/support/until.ts";

/** A change is in force everywhere within a second; the tests' machine has more to do. */
const patienceMs = 50_000;

describe.skipIf(!hasRedis)(`an operator at one of two gateways${redisMissing}`, () => {
  let nodes: Nodes;
  let here: GatewayProcess;
  let there: GatewayProcess;
  beforeAll(async () => {
    nodes = await startNodes();
    [here, there] = nodes.gateways;
  }, 240_000);
  afterAll(async () => {
    await endProcesses();
    await nodes.stop();
  });

  let cookie = "";
  const ask = async (method: string, path: string, body?: unknown): Promise<Response> => {
    const headers = { cookie, origin: there.url };
    const response = await fetch(there.url + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const line = response.headers
      .getSetCookie()
      .find((each) => each.startsWith(brand.sessionCookie));
    if (line !== undefined) cookie = line.split(";")[0] ?? "";
    return response;
  };

  test("blocks a user's sessions and keys at the other gateway and unblocks them", async () => {
    const claim = nodes.gateways.flatMap(
      ({ stdoutLines }) => /claim\?token=([0-9A-Za-z]{43})/.exec(stdoutLines.join("\n"))?.[1] ?? [],
    );
    const owner = {
      name: "Owner",
      email: "owner@example.com",
      password: "a password of some length",
    };
    const claimed = await Promise.all(
      claim.map((token) => ask("POST", "/api/auth/sign-up", { ...owner, claim_token: token })),
    );
    expect(claimed.map(({ status }) => status)).toContain(200);
    const organization = textAt(
      await (await ask("POST", "/v1/organizations", { name: "Acme" })).json(),
      "id",
    );
    const invited = await ask("POST", `/v1/organizations/${organization}/invitations`, {
      email: "guest@example.com",
    });
    const invitation: unknown = await invited.json();
    cookie = "";
    const token = new URL(textAt(invitation, "url")).searchParams.get("token");
    const guest = { ...owner, email: "guest@example.com", invitation_token: token };
    expect((await ask("POST", "/api/auth/sign-up", guest)).status).toBe(200);
    const id = textAt(await (await ask("GET", "/v1/session")).json(), "user.id");
    const key = textAt(await (await ask("POST", "/v1/keys", { name: "own" })).json(), "key");
    const statusWith = async (gateway: GatewayProcess): Promise<number> =>
      (await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } }))
        .status;
    const untilBoth = async (status: number): Promise<void> => {
      for (const gateway of nodes.gateways) {
        await until(async () => (await statusWith(gateway)) === status, {
          patienceMs,
          what: `${status} at each gateway`,
        });
      }
    };
    await untilBoth(200);
    await manage(here, `/admin/users/${id}`, { method: "PATCH", body: { blocked: true } });
    await untilBoth(401);
    expect((await ask("GET", "/v1/session")).status).toBe(401);
    await manage(here, `/admin/users/${id}`, { method: "PATCH", body: { blocked: false } });
    await untilBoth(200);
  }, 240_000);
});
