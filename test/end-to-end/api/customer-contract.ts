import type { ContractRow } from "./credential-contract.ts";

const none = "/customers/cus_none";
const reading = { scope: "read:llm-keys", accepted: 404 } as const;
const changing = { scope: "write:llm-keys", accepted: 404 } as const;
const noTeam = "/teams/team_none";
const changingTeam = { scope: "write:security", accepted: 404 } as const;
const page = { without: "open", base: "root", accepted: 404 } as const;

/** Rows of customers and teams, their parts, and the dashboard's pages of them and of batches and files. */
export const customerRows: Record<string, ContractRow> = {
  "GET /customers": { scope: "read:llm-keys" },
  "POST /customers": { scope: "write:llm-keys", accepted: 400 },
  "GET /customers/:id": { ...reading, path: none },
  "PATCH /customers/:id": { ...changing, path: none },
  "DELETE /customers/:id": { ...changing, path: none },
  "GET /customers/:id/credits": { ...reading, path: `${none}/credits` },
  "POST /customers/:id/credits": { ...changing, path: `${none}/credits`, accepted: 400 },
  "GET /customers/:id/keys": { ...reading, path: `${none}/keys` },
  "POST /customers/:id/keys": { ...changing, path: `${none}/keys`, accepted: 400 },
  "GET /customers/:id/meter-events": { ...reading, path: `${none}/meter-events` },
  "GET /customers/:id/statement": { ...reading, path: `${none}/statement` },
  "POST /customers/:id/balance-link": { ...changing, path: `${none}/balance-link` },
  "GET /balance/:token": { ...page, path: "/balance/none" },
  "GET /teams": { scope: "read:llm-keys" },
  "POST /teams": { scope: "write:security", accepted: 400 },
  "GET /teams/:id": { ...reading, path: noTeam },
  "PATCH /teams/:id": { ...changingTeam, path: noTeam },
  "DELETE /teams/:id": { ...changingTeam, path: noTeam },
  "GET /teams/:id/members": { ...reading, path: `${noTeam}/members` },
  "POST /teams/:id/members": { ...changingTeam, path: `${noTeam}/members`, accepted: 400 },
  "DELETE /teams/:id/members/:user_id": { ...changingTeam, path: `${noTeam}/members/usr_none` },
  "GET /dashboard/teams": { ...page, path: "/dashboard/teams" },
  "GET /dashboard/teams/:id": { ...page, path: "/dashboard/teams/team_none" },
  "GET /dashboard/batches": { ...page, path: "/dashboard/batches" },
  "GET /dashboard/batches/:id": { ...page, path: "/dashboard/batches/batch_none" },
  "GET /dashboard/customers": { ...page, path: "/dashboard/customers" },
  "GET /dashboard/customers/:id": { ...page, path: "/dashboard/customers/cus_none" },
  "GET /dashboard/files": { ...page, path: "/dashboard/files" },
};
