import type { ContractRow } from "./credential-contract.ts";

const operators = { scope: "write:management-keys", operator: true } as const;

/** Rows of what operators grant, whom they manage, and what they configure. */
export const operatorRows: Record<string, ContractRow> = {
  "POST /admin/grants": { ...operators, accepted: 400 },
  "GET /admin/grants": operators,
  "GET /admin/users": operators,
  "GET /admin/users/:id": { ...operators, path: "/admin/users/usr_none", accepted: 404 },
  "PATCH /admin/users/:id": { ...operators, path: "/admin/users/usr_none", accepted: 404 },
  "DELETE /admin/users/:id": { ...operators, path: "/admin/users/usr_none", accepted: 404 },
  "DELETE /admin/users/:id/sessions": {
    ...operators,
    path: "/admin/users/usr_none/sessions",
    accepted: 404,
  },
  "DELETE /admin/users/:id/two-factor": {
    ...operators,
    path: "/admin/users/usr_none/two-factor",
    accepted: 404,
  },
  "POST /admin/users/:id/password-reset": {
    ...operators,
    path: "/admin/users/usr_none/password-reset",
    accepted: 404,
  },
  "GET /admin/incidents": operators,
  "POST /admin/incidents": { ...operators, accepted: 400 },
  "PATCH /admin/incidents/:id": { ...operators, path: "/admin/incidents/none", accepted: 400 },
  "DELETE /admin/incidents/:id": { ...operators, path: "/admin/incidents/none", accepted: 404 },
  "GET /admin/configuration": operators,
  "GET /admin/configuration/export": operators,
  "POST /admin/configuration": { ...operators, accepted: 400 },
  "POST /admin/configuration/test": { ...operators, accepted: 400 },
  "DELETE /admin/configuration/:section/:id": {
    ...operators,
    path: "/admin/configuration/providers/none",
    accepted: 404,
  },
};
