import { responsesRows } from "./responses-contract.ts";
import { mediaRows } from "./media-contract.ts";
import { doors } from "./doors-contract.ts";
import { mcpRows } from "./mcp-contract.ts";
import { operatorRows } from "./operator-contract.ts";
import { filesAndBatches } from "./file-contract.ts";
import { customerRows } from "./customer-contract.ts";
import { runs } from "./run-contract.ts";
import type { Scope } from "../../../src/identity/keys/scopes.ts";

/** Who may call an endpoint, as the contract has it. */
export interface ContractRow {
  /** `open` looks at no credential; `optional` needs none but refuses a wrong one. */
  without?: "open" | "optional";
  llm?: true;
  /** LLM keys get 404, since SDKs for inference use the path for what is not offered. */
  llmKeysMiss?: true;
  /** Tells a key of itself, so that its own list of endpoints does not keep it away. */
  ofItself?: true;
  /** Scope by which management keys are accepted, and the sessions of those whose role holds it. */
  scope?: Scope;
  /** Of those, operators of the service alone. */
  operator?: true;
  /** Every kind of key is accepted, with any scopes; refusals are JSON-RPC's. */
  mcp?: true;
  /** Sessions are accepted, and nothing else. */
  session?: true;
  /** A path that fits the endpoint, where it has parameters. */
  path?: string;
  /** What an accepted caller gets for this bare request; 200 unless named. */
  accepted?: number;
  /** The same for people who are signed in, where a page differs for them. */
  signedIn?: number;
  base?: "root";
  /** It answers handshakes of WebSockets alone; a bare one lacks a key, and gets a 400. */
  socket?: true;
}

const operators = { scope: "write:management-keys", operator: true } as const;

/** Rows of one record that is shown, changed and deleted. */
const record = (
  name: string,
  { path, of }: { path: string; of: "hub" | "llm-keys" | "presets" },
): Record<string, ContractRow> => ({
  [`GET ${name}`]: { scope: `read:${of}`, path, accepted: 404 },
  [`PATCH ${name}`]: { scope: `write:${of}`, path, accepted: 404 },
  [`DELETE ${name}`]: { scope: `write:${of}`, path, accepted: 404 },
});

/** Rows of calls that take an LLM key and a body. */
const calls = (...paths: readonly string[]): Record<string, ContractRow> =>
  Object.fromEntries(paths.map((path) => [`POST ${path}`, { llm: true, accepted: 400 }]));

/** Rows of a figure of a model, by both forms of its path; no credential is needed. */
const modelFigure = (name: string): Record<string, ContractRow> =>
  Object.fromEntries(
    [
      [":owner/:model", "nobody/nothing"],
      [":id", "nobody%2Fnothing"],
    ].map(([form, model]): [string, ContractRow] => [
      `GET /models/${form}/${name}`,
      { without: "optional", llm: true, path: `/models/${model}/${name}`, accepted: 404 },
    ]),
  );

/**
 * Contract: "Index", "Credential families" and "Scopes"; each endpoint of the table has its row
 * here.
 */
export const contract: Record<string, ContractRow> = {
  ...responsesRows,
  "POST /chat/completions": { llm: true, accepted: 400 },
  "POST /messages": { llm: true, accepted: 400 },
  "POST /routing/explain": { llm: true, scope: "inference", accepted: 400 },
  "POST /v2/embed": { llm: true, accepted: 400, base: "root" },
  "POST /v2/rerank": { llm: true, accepted: 400, base: "root" },
  ...calls("/messages/count_tokens"),
  ...calls("/embeddings", "/rerank", "/moderations", "/decisions", "/systemone"),
  ...mediaRows,
  ...filesAndBatches,
  "GET /models": { without: "optional", llm: true },
  "GET /models/recommend": { without: "optional", llm: true, accepted: 400 },
  "GET /models/count": { without: "optional", llm: true },
  "GET /models/:owner/:model": {
    without: "optional",
    llm: true,
    path: "/models/nobody/nothing",
    accepted: 404,
  },
  "GET /models/:id": {
    without: "optional",
    llm: true,
    path: "/models/nobody%2Fnothing",
    accepted: 404,
  },
  "GET /models/metrics": { without: "optional", llm: true },
  "GET /models/uptime": { without: "optional", llm: true },
  ...modelFigure("routing-preview"),
  ...modelFigure("metrics"),
  ...modelFigure("privacy"),
  ...modelFigure("prices"),
  ...modelFigure("uptime"),
  "GET /models/:owner/:model/endpoints": {
    without: "optional",
    llm: true,
    path: "/models/nobody/nothing/endpoints",
    accepted: 404,
  },
  "GET /endpoints/zdr": { without: "optional", llm: true },
  "GET /models/user": { llm: true },
  "GET /embeddings/models": { without: "optional", llm: true },
  "GET /model/:owner/:model": {
    without: "optional",
    llm: true,
    path: "/model/nobody/nothing",
    accepted: 404,
  },
  "GET /providers": { without: "open" },
  "GET /logos/:file": { without: "open", path: "/logos/openai.svg", base: "root" },
  "POST /keys": { scope: "write:llm-keys", accepted: 400 },
  "GET /keys": { scope: "read:llm-keys" },
  ...record("/keys/:hash", { path: "/keys/none", of: "llm-keys" }),
  "POST /keys/:hash/rotate": { scope: "write:llm-keys", path: "/keys/none/rotate", accepted: 404 },
  "GET /": { without: "open", base: "root", accepted: 303, signedIn: 200 },
  "GET /scripts/passkey.js": { without: "open", base: "root" },
  "GET /sign-in": { without: "open", base: "root", signedIn: 303 },
  "POST /sign-in": { without: "open", base: "root", accepted: 400 },
  "GET /sign-in/code": { without: "open", base: "root", accepted: 303 },
  "POST /sign-in/code": { without: "open", base: "root", accepted: 303 },
  "POST /sign-in/provider": { without: "open", base: "root", accepted: 400 },
  "GET /sign-out": { without: "open", base: "root", accepted: 303, signedIn: 200 },
  "POST /sign-out": { without: "open", base: "root", accepted: 303 },
  "GET /forgot-password": { without: "open", base: "root" },
  "POST /forgot-password": { without: "open", base: "root", accepted: 400 },
  ...Object.fromEntries(
    [
      "",
      "/playground",
      "/activity",
      "/usage",
      "/models",
      "/models/:owner/:model",
      "/keys",
      "/connections",
      "/credits",
      "/members",
      "/account",
      "/presets",
      "/presets/:slug",
      "/aliases",
      "/provider-keys",
      "/routing",
      "/budgets",
      "/security",
      "/hub",
      "/operator",
    ].map(
      (path) =>
        [
          `GET /dashboard${path}`,
          { without: "open", base: "root", path: `/dashboard${path}`, accepted: 404 },
        ] as const,
    ),
  ),
  "GET /assets/:file": { without: "open", base: "root", path: "/assets/none.js", accepted: 404 },
  "GET /fonts/:file": { without: "open", base: "root", path: "/fonts/none.woff2", accepted: 404 },
  "GET /device": { without: "open", base: "root" },
  "POST /device": { without: "open", base: "root", accepted: 400 },
  "GET /auth": { without: "open", base: "root", accepted: 400 },
  "POST /auth": { without: "open", base: "root", accepted: 400 },
  "GET /mcp/oauth/authorize": { without: "open", accepted: 400 },
  "POST /mcp/oauth/authorize": { without: "open", accepted: 400 },
  "POST /oauth/device/code": { without: "open" },
  "POST /oauth/token": { without: "open", accepted: 400 },
  "POST /oauth/device_authorization": { without: "open" },
  ...doors,
  ...mcpRows,
  ...runs,
  ...customerRows,
  "POST /mcp/oauth/token": { without: "open", accepted: 400 },
  "POST /oauth/revoke": { without: "open", accepted: 400 },
  "POST /mcp/oauth/revoke": { without: "open", accepted: 400 },
  "POST /mcp/oauth/register": { without: "open", accepted: 400 },
  "GET /.well-known/oauth-authorization-server": { without: "open", base: "root" },
  "GET /.well-known/openid-configuration": { without: "open", base: "root" },
  "GET /.well-known/oauth-protected-resource": { without: "open", base: "root" },
  ...Object.fromEntries(
    ["/mcp", "/v1/mcp", "/api/v1/mcp", "/api/v1", "/api", "/v1"].flatMap(
      (path) =>
        [
          [`GET /.well-known/oauth-authorization-server${path}`, { without: "open", base: "root" }],
          [`GET /.well-known/oauth-protected-resource${path}`, { without: "open", base: "root" }],
        ] as const,
    ),
  ),
  "GET /connections": { scope: "read:connections" },
  "GET /connections/:id": {
    scope: "read:connections",
    path: "/connections/con_none",
    accepted: 404,
  },
  "DELETE /connections/:id": {
    scope: "write:connections",
    path: "/connections/con_none",
    accepted: 404,
  },
  "GET /admin/connections": operators,
  "DELETE /admin/connections/:id": {
    ...operators,
    path: "/admin/connections/con_none",
    accepted: 404,
  },
  "GET /favicon.svg": { without: "open", base: "root" },
  "POST /auth/keys/code": { llm: true, accepted: 400 },
  "POST /auth/keys": { without: "open", accepted: 400 },
  "POST /management-keys": { scope: "write:management-keys", accepted: 400 },
  "GET /management-keys": { scope: "read:management-keys" },
  "DELETE /management-keys/:id": {
    scope: "write:management-keys",
    path: "/management-keys/mgk_none",
    accepted: 404,
  },
  "POST /presets": { scope: "write:presets", accepted: 400 },
  "GET /presets": { scope: "read:presets" },
  "GET /presets/:slug/versions": {
    scope: "read:presets",
    path: "/presets/none/versions",
    accepted: 404,
  },
  "POST /presets/:slug/versions/:version/restore": {
    scope: "write:presets",
    path: "/presets/none/versions/1/restore",
    accepted: 404,
  },
  ...record("/presets/:slug", { path: "/presets/none", of: "presets" }),
  "POST /aliases": { scope: "write:presets", accepted: 400 },
  "GET /aliases": { scope: "read:presets" },
  ...record("/aliases/:name", { path: "/aliases/none", of: "presets" }),
  "POST /prompts": { scope: "write:hub", accepted: 400 },
  "GET /prompts": { scope: "read:hub" },
  "POST /skills": { scope: "write:hub", accepted: 400 },
  "GET /skills": { scope: "read:hub" },
  ...Object.fromEntries(
    (["prompts", "skills"] as const).flatMap((kind): [string, ContractRow][] => [
      ...Object.entries(record(`/${kind}/:id`, { path: `/${kind}/none`, of: "hub" })),
      [
        `GET /${kind}/:id/versions`,
        { scope: "read:hub", path: `/${kind}/none/versions`, accepted: 404 },
      ],
      [`POST /${kind}/:id/star`, { scope: "write:hub", path: `/${kind}/none/star`, accepted: 404 }],
      [
        `DELETE /${kind}/:id/star`,
        { scope: "write:hub", path: `/${kind}/none/star`, accepted: 404 },
      ],
      [`POST /${kind}/:id/fork`, { scope: "write:hub", path: `/${kind}/none/fork`, accepted: 404 }],
    ]),
  ),
  "GET /skills/:id/export": { scope: "read:hub", path: "/skills/none/export", accepted: 404 },
  "POST /hubs": { scope: "write:hub", accepted: 400 },
  "GET /hubs": { scope: "read:hub" },
  ...record("/hubs/:slug", { path: "/hubs/none", of: "hub" }),
  "GET /hubs/:slug/items": { scope: "read:hub", path: "/hubs/none/items", accepted: 404 },
  "POST /hubs/:slug/items": { scope: "write:hub", path: "/hubs/none/items", accepted: 400 },
  "GET /hubs/:slug/items/:item": {
    scope: "read:hub",
    path: "/hubs/none/items/none",
    accepted: 404,
  },
  "PATCH /hubs/:slug/items/:item": {
    scope: "write:hub",
    path: "/hubs/none/items/none",
    accepted: 404,
  },
  "GET /hubs/:slug/items/:item/versions": {
    scope: "read:hub",
    path: "/hubs/none/items/none/versions",
    accepted: 404,
  },
  "DELETE /hubs/:slug/items/:item": {
    scope: "write:hub",
    path: "/hubs/none/items/none",
    accepted: 404,
  },
  "POST /hubs/:slug/import": { scope: "write:hub", path: "/hubs/none/import", accepted: 400 },
  "GET /hubs/:slug/export": { scope: "read:hub", path: "/hubs/none/export", accepted: 404 },
  "POST /conversations": { scope: "write:llm-keys", accepted: 400, llmKeysMiss: true },
  "GET /conversations": { scope: "read:llm-keys" },
  "GET /conversations/settings": { scope: "read:llm-keys" },
  "PATCH /conversations/settings": { scope: "write:security", accepted: 400 },
  ...record("/conversations/:id", { path: "/conversations/cnv_none", of: "llm-keys" }),
  "POST /conversations/:id/messages": {
    scope: "write:llm-keys",
    path: "/conversations/cnv_none/messages",
    accepted: 400,
  },
  "GET /admin/prompts": operators,
  "POST /admin/prompts/:id/approve": {
    ...operators,
    path: "/admin/prompts/none/approve",
    accepted: 404,
  },
  "POST /admin/prompts/:id/reject": {
    ...operators,
    path: "/admin/prompts/none/reject",
    accepted: 404,
  },
  "POST /auth/byok": { scope: "write:byok", accepted: 400 },
  "POST /auth/byok/test": { scope: "write:byok", accepted: 400 },
  "POST /auth/byok/keys/:key_id/test": {
    scope: "write:byok",
    path: "/auth/byok/keys/byok_none/test",
    accepted: 404,
  },
  "GET /auth/byok": { scope: "read:byok" },
  "PATCH /auth/byok/keys/:key_id": {
    scope: "write:byok",
    path: "/auth/byok/keys/byok_none",
    accepted: 404,
  },
  "DELETE /auth/byok/keys/:key_id": {
    scope: "write:byok",
    path: "/auth/byok/keys/byok_none",
    accepted: 404,
  },
  "POST /byok/donated": { scope: "write:byok", accepted: 400 },
  "PATCH /byok/donated/:id": {
    scope: "write:byok",
    path: "/byok/donated/byok_none",
    accepted: 404,
  },
  "DELETE /byok/donated/:id": {
    scope: "write:byok",
    path: "/byok/donated/byok_none",
    accepted: 404,
  },
  "POST /budgets": { scope: "write:security", accepted: 400 },
  "GET /budgets": { scope: "read:analytics" },
  "GET /budgets/alerts": { scope: "read:analytics" },
  "POST /budgets/:id/test": {
    scope: "write:security",
    path: "/budgets/bud_none/test",
    accepted: 404,
  },
  "GET /budgets/:id": { scope: "read:analytics", path: "/budgets/bud_none", accepted: 404 },
  "PATCH /budgets/:id": { scope: "write:security", path: "/budgets/bud_none", accepted: 404 },
  "DELETE /budgets/:id": { scope: "write:security", path: "/budgets/bud_none", accepted: 404 },
  "POST /budgets/:id/rotate-secret": {
    scope: "write:security",
    path: "/budgets/bud_none/rotate-secret",
    accepted: 404,
  },
  "GET /budgets/:id/alerts": {
    scope: "read:analytics",
    path: "/budgets/bud_none/alerts",
    accepted: 404,
  },
  "GET /auth/key": { llm: true, ofItself: true },
  "GET /key": { llm: true, ofItself: true, scope: "read:llm-keys" },
  "POST /keys/:hash/children": {
    scope: "write:llm-keys",
    path: "/keys/none/children",
    accepted: 400,
  },
  "GET /credits/transactions": { scope: "read:credits" },
  "GET /credits": { llm: true, scope: "read:credits" },
  "GET /security/keys": { scope: "read:security" },
  "PATCH /security/keys/:hash": {
    scope: "write:security",
    path: "/security/keys/none",
    accepted: 404,
  },
  "GET /security/ip-allowlist": { scope: "read:security" },
  "POST /security/ip-allowlist": { scope: "write:security", accepted: 400 },
  "DELETE /security/ip-allowlist/:id": {
    scope: "write:security",
    path: "/security/ip-allowlist/ipa_none",
    accepted: 404,
  },
  "GET /security/privacy": { scope: "read:security" },
  "PATCH /security/privacy": { scope: "write:security" },
  "GET /security/audit": { scope: "read:security" },
  "GET /credits/quote": { scope: "read:credits", path: "/credits/quote?amount=10", accepted: 501 },
  "POST /credits/top-ups": { scope: "write:management-keys", accepted: 400 },
  "GET /credits/top-ups": { scope: "read:credits", accepted: 501 },
  "GET /credits/top-ups/:id": {
    scope: "read:credits",
    path: "/credits/top-ups/top_none",
    accepted: 501,
  },
  "GET /credits/automatic": { scope: "read:credits", accepted: 501 },
  "POST /credits/automatic": { scope: "write:management-keys", accepted: 400 },
  "DELETE /credits/automatic": { scope: "write:management-keys", accepted: 501 },
  "GET /credits/invoices": { scope: "read:credits", accepted: 501 },
  "GET /credits/invoices/:id": {
    scope: "read:credits",
    path: "/credits/invoices/INV-000001",
    accepted: 501,
  },
  "GET /top-up": { without: "open", base: "root", accepted: 501 },
  "POST /webhooks/stripe": { without: "open", accepted: 501 },
  ...operatorRows,
  "GET /admin/workspaces": operators,
  "GET /admin/workspaces/:id": { ...operators, path: "/admin/workspaces/ws_none", accepted: 404 },
  "GET /admin/workspaces/:id/usage": {
    ...operators,
    path: "/admin/workspaces/ws_none/usage",
    accepted: 404,
  },
  "GET /admin/users/:id/usage": {
    ...operators,
    path: "/admin/users/usr_none/usage",
    accepted: 404,
  },
  "PATCH /admin/workspaces/:id": { ...operators, path: "/admin/workspaces/ws_none", accepted: 404 },
  "GET /admin/plans": operators,
  "GET /admin/settings": operators,
  "POST /admin/reload": operators,
  "GET /admin/upstreams": operators,
  "POST /admin/upstreams/:id/clear": {
    ...operators,
    path: "/admin/upstreams/none/clear",
    accepted: 404,
  },
  "GET /admin/overview": operators,
  "GET /admin/usage": operators,
  "GET /admin/errors": operators,
  "GET /admin/generations": operators,
  "GET /admin/generations/:id": {
    ...operators,
    path: "/admin/generations/gen_none",
    accepted: 404,
  },
  "GET /admin/north-star": operators,
  "GET /admin/smoke-tests": operators,
  "POST /admin/smoke-tests": operators,
  "GET /generation/:id": { llm: true, path: "/generation/gen_none", accepted: 404 },
  "GET /generation/content": { llm: true, scope: "read:security", accepted: 400 },
  "GET /generation/:id/explain": {
    llm: true,
    scope: "read:analytics",
    path: "/generation/gen_none/explain",
    accepted: 404,
  },
  "GET /analytics/spend": { scope: "read:analytics" },
  "GET /generation": { llm: true, path: "/generation?id=gen_none", accepted: 404 },
  "GET /health": { without: "open" },
  "GET /health/history": { without: "open" },
  "GET /status": { without: "open", base: "root" },
  "GET /status.atom": { without: "open", base: "root" },
  "GET /catalog": { without: "open", base: "root" },
  "GET /catalog/:owner/:model": {
    without: "open",
    base: "root",
    path: "/catalog/nobody/nothing",
    accepted: 404,
  },
  "GET /analytics/network": { without: "open" },
  "POST /session/playground-key": { session: true },
  "GET /analytics/usage": { scope: "read:analytics" },
  "GET /analytics/usage/parts": { scope: "read:analytics" },
  "GET /analytics/activity": { scope: "read:analytics" },
  "GET /activity": { scope: "read:analytics" },
  "GET /analytics/generations": { scope: "read:analytics" },
  "GET /analytics/generations/histogram": { scope: "read:analytics" },
  "GET /analytics/errors": { scope: "read:analytics" },
  "GET /analytics/latency": { scope: "read:analytics" },
  "GET /claim": { without: "open", base: "root", signedIn: 303 },
  "POST /claim": { without: "open", base: "root", accepted: 400 },
  "GET /join": { without: "open", base: "root", accepted: 404 },
  "GET /sign-up": { without: "open", base: "root", signedIn: 303 },
  "POST /sign-up": { without: "open", base: "root", accepted: 400 },
  "POST /join/accept": { without: "open", base: "root", accepted: 400 },
  "POST /join": { without: "open", base: "root", accepted: 400 },
  "GET /api/auth/methods": { without: "open", base: "root" },
  "GET /api/auth/error": { without: "open", base: "root", accepted: 400 },
  "POST /api/auth/sign-up": { without: "open", base: "root", accepted: 400 },
  "POST /api/auth/sign-in/email": { without: "open", base: "root", accepted: 400 },
  "POST /api/auth/sign-in/two-factor": { without: "open", base: "root", accepted: 400 },
  "POST /api/auth/two-factor/enable": { session: true, base: "root", accepted: 400 },
  "POST /api/auth/two-factor/confirm": { session: true, base: "root", accepted: 400 },
  "POST /api/auth/two-factor/backup-codes": { session: true, base: "root", accepted: 400 },
  "POST /api/auth/two-factor/disable": { session: true, base: "root", accepted: 400 },
  "POST /api/auth/sign-in/social": { without: "open", base: "root", accepted: 400 },
  "GET /api/auth/callback/:provider": {
    without: "open",
    base: "root",
    path: "/api/auth/callback/none",
    accepted: 302,
  },
  "POST /api/auth/sign-out": { without: "open", base: "root" },
  "GET /api/auth/passkey/generate-authenticate-options": { without: "open", base: "root" },
  "POST /api/auth/passkey/verify-authentication": { without: "open", base: "root", accepted: 400 },
  "POST /api/auth/link-social": { session: true, base: "root", accepted: 400 },
  "GET /api/auth/passkey/generate-register-options": { session: true, base: "root" },
  "POST /api/auth/passkey/verify-registration": { session: true, base: "root", accepted: 400 },
  "GET /api/auth/passkey/list-user-passkeys": { session: true, base: "root" },
  "POST /api/auth/passkey/delete-passkey": { session: true, base: "root", accepted: 400 },
  "POST /api/auth/request-password-reset": { without: "open", base: "root", accepted: 400 },
  "POST /api/auth/reset-password": { without: "open", base: "root", accepted: 400 },
  "GET /reset-password": { without: "open", base: "root", accepted: 303 },
  "POST /reset-password": { without: "open", base: "root", accepted: 400 },
  "POST /api/auth/send-verification-email": { session: true, base: "root", accepted: 501 },
  "POST /api/auth/verify-email": { without: "open", base: "root", accepted: 400 },
  "GET /verify-email": { without: "open", base: "root", accepted: 404 },
  "POST /verify-email": { without: "open", base: "root", accepted: 400 },
  "POST /api/auth/change-password": { session: true, base: "root", accepted: 400 },
  "GET /session": { session: true },
  "PATCH /session": { session: true },
  "GET /sessions": { session: true },
  "DELETE /sessions": { session: true },
  "DELETE /sessions/:id": { session: true, path: "/sessions/ses_none", accepted: 404 },
  "GET /session/preferences": { session: true },
  "PATCH /session/preferences": { session: true },
  "GET /session/sign-in-methods": { session: true },
  "DELETE /session/sign-in-methods/:id": {
    session: true,
    path: "/session/sign-in-methods/acct_none",
    accepted: 404,
  },
  "DELETE /session/user": { session: true, accepted: 400 },
  "POST /api/auth/change-email": { session: true, base: "root", accepted: 400 },
  "DELETE /organizations/:id": { session: true, path: "/organizations/org_none", accepted: 404 },
  "DELETE /admin/workspaces/:id/ip-allowlist": {
    ...operators,
    path: "/admin/workspaces/ws_none/ip-allowlist",
    accepted: 404,
  },
  "GET /workspaces": { session: true },
  "PATCH /workspaces/:id": { session: true, path: "/workspaces/ws_none", accepted: 400 },
  "GET /referrals": { scope: "read:credits", accepted: 501 },
  "POST /referrals/accept": { session: true, accepted: 400 },
  "POST /organizations": { session: true, accepted: 400 },
  "GET /organizations": { session: true },
  "GET /organizations/:id": { session: true, path: "/organizations/org_none", accepted: 404 },
  "PATCH /organizations/:id": { session: true, path: "/organizations/org_none", accepted: 400 },
  "GET /organizations/:id/members": {
    session: true,
    path: "/organizations/org_none/members",
    accepted: 404,
  },
  "PATCH /organizations/:id/members/:user_id": {
    session: true,
    path: "/organizations/org_none/members/usr_none",
    accepted: 400,
  },
  "DELETE /organizations/:id/members/:user_id": {
    session: true,
    path: "/organizations/org_none/members/usr_none",
    accepted: 404,
  },
  "POST /organizations/:id/invitations": {
    session: true,
    path: "/organizations/org_none/invitations",
    accepted: 400,
  },
  "GET /organizations/:id/invitations": {
    session: true,
    path: "/organizations/org_none/invitations",
    accepted: 404,
  },
  "DELETE /organizations/:id/invitations/:invitation_id": {
    session: true,
    path: "/organizations/org_none/invitations/inv_none",
    accepted: 404,
  },
  "POST /invitations/accept": { session: true, accepted: 400 },
  "GET /openapi.json": { without: "open" },
  "GET /docs": { without: "open", base: "root" },
  "GET /llms.txt": { without: "open", base: "root" },
  "GET /docs/:file": { without: "open", base: "root", path: "/docs/llms.txt" },
  "GET /docs/:section/:page": { without: "open", base: "root", path: "/docs/start/quickstart" },
  "GET /healthz": { without: "open", base: "root" },
  "GET /readyz": { without: "open", base: "root" },
  "GET /metrics": { without: "open", base: "root" },
};
