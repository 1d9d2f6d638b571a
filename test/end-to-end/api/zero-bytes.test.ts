import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startOperatorScene, type OperatorScene } from "../admin/operator-scene.ts";
import { errorOf } from "./error-envelope-of.ts";
import { allEngines } from "./two-workspaces.ts";

/** Postgres takes no zero byte in a text, and answers one as a mistake of the gateway. */
describe.each(allEngines)("a zero byte on %s", (_, freshUrl) => {
  let scene: OperatorScene;
  beforeAll(async () => {
    scene = await startOperatorScene(await freshUrl(), {
      referrals: { referrerNano: 1n, referredNano: 1n, after: "sign_up", maximumPerWorkspace: 1 },
      payments: {
        stripe: {
          secretKey: "sk_test_none",
          webhookSecret: undefined,
          apiBase: "http://127.0.0.1:1",
        },
        currency: "usd",
        fee: { basisPoints: 0, fixedCents: 0 },
        creditCentsMin: 500,
        creditCentsMax: 500_000,
        seller: undefined,
      },
    });
  }, 240_000);
  afterAll(() => scene.stop());

  const name = { name: "n" };
  const paths: readonly [method: string, path: string, body?: object][] = [
    ["GET", "/admin/users/%00"],
    ["PATCH", "/admin/users/%00", { blocked: true }],
    ["DELETE", "/admin/users/a%00b"],
    ["DELETE", "/admin/users/%00/sessions"],
    ["PATCH", "/admin/incidents/%00", { text: "known" }],
    ["DELETE", "/admin/incidents/a%00"],
    ["POST", "/admin/users/%00/password-reset"],
    ["GET", "/admin/workspaces/%00"],
    ["PATCH", "/admin/workspaces/%00", {}],
    ["POST", "/admin/upstreams/%00/clear"],
    ["GET", "/budgets/%00"],
    ["PATCH", "/budgets/%00", name],
    ["DELETE", "/budgets/%00"],
    ["GET", "/budgets/%00/alerts"],
    ["POST", "/budgets/%00/rotate-secret"],
    ["DELETE", "/management-keys/a%00"],
    ["GET", "/keys/%00"],
    ["DELETE", "/keys/%00"],
    ["POST", "/keys/%00/rotate"],
    ["GET", "/presets/%00"],
    ["PATCH", "/presets/%00", {}],
    ["DELETE", "/presets/%00"],
    ["PATCH", "/auth/byok/keys/%00", {}],
    ["DELETE", "/byok/donated/%00"],
    ["DELETE", "/security/ip-allowlist/%00"],
    ["GET", "/organizations/%00"],
    ["PATCH", "/organizations/%00", name],
    ["GET", "/organizations/%00/members"],
    ["PATCH", "/organizations/%00/members/x", { role: "member" }],
    ["DELETE", "/organizations/ORG/members/%00"],
    ["PATCH", "/organizations/ORG/members/%00", { role: "member" }],
    ["DELETE", "/organizations/ORG/invitations/%00"],
    ["DELETE", "/sessions/%00"],
    ["PATCH", "/workspaces/%00", name],
    ["GET", "/credits/top-ups/%00"],
    ["GET", "/credits/invoices/%00"],
    ["POST", "/byok/donated", { key_id: "\0", consent: true }],
    ["PATCH", "/session", { workspace_id: "\0" }],
    ["GET", "/generation/gen_%00/explain"],
    ["GET", "/teams/%00"],
    ["DELETE", "/teams/a%00"],
    ["GET", "/customers/a%00"],
    ["GET", "/runs/run_%00"],
    ["DELETE", "/connections/%00"],
    ["DELETE", "/aliases/%00"],
    ["GET", "/hubs/%00"],
    ["GET", "/conversations/%00"],
  ];
  test.each(paths.map((row) => [row] as const))("%j returns 404", async ([method, path, body]) => {
    const answer = await scene.owner.api(method, path.replace("ORG", scene.organizationId), body);
    expect(await errorOf(answer)).toMatchObject({ status: 404, code: "not_found" });
  });

  const fields: readonly [method: string, path: string, param: string, body?: object][] = [
    ["GET", "/admin/users?search=%00", "search"],
    ["GET", "/admin/workspaces?search=a%00", "search"],
    ["GET", "/admin/grants?workspace_id=%00", "workspace_id"],
    ["GET", "/security/audit?cursor=%00", "cursor"],
    ["GET", "/security/audit?actor=%00", "actor"],
    ["GET", "/analytics/generations?after=%00", "after"],
    ["GET", "/analytics/generations?cursor=%00", "cursor"],
    ["GET", "/analytics/generations?model=a%00", "model"],
    ["GET", "/analytics/generations?session_id=%00", "session_id"],
    ["GET", "/customers?cursor=%00", "cursor"],
    ["GET", "/runs?parent_id=%00", "parent_id"],
    ["POST", "/referrals/accept", "referral_code", { referral_code: "a\0" }],
    ["POST", "/keys", "name", { name: "a\0" }],
    ["POST", "/organizations", "name", { name: "a\0" }],
    ["POST", "/admin/grants", "workspace_id", { workspace_id: "\0", amount: 1 }],
  ];
  test.each(fields.map((row) => [row] as const))(
    "%j returns 400",
    async ([method, path, param, body]) => {
      expect(await errorOf(await scene.owner.api(method, path, body))).toMatchObject({
        status: 400,
        code: "bad_request",
        param,
      });
    },
  );

  test("in the address of an app returns 400", async () => {
    const app = { redirect_uris: ["https://app.example/"], logo_uri: "https://app.example/\0" };
    const answer = await scene.stranger().ask("POST", "/api/v1/mcp/oauth/register", app);
    expect([answer.status, await answer.json()]).toEqual([
      400,
      expect.objectContaining({ error: "invalid_client_metadata" }),
    ]);
  });

  test("in a passkey id or a referral code returns 400", async () => {
    const passkey = await scene.owner.ask("POST", "/api/auth/passkey/delete-passkey", {
      id: "\0",
    });
    expect(await errorOf(passkey)).toMatchObject({ status: 400, param: "id" });
    const person = {
      ...name,
      email: "new@example.com",
      password: "a password of theirs",
      referral_code: "\0",
    };
    const signUp = await scene.stranger().ask("POST", "/api/auth/sign-up", person);
    expect(await errorOf(signUp)).toMatchObject({ status: 400, param: "referral_code" });
  });
});
