import type { ContractRow } from "./credential-contract.ts";

/** Rows of what keys open within their own limits: child keys, and runs. */
export const runs: Record<string, ContractRow> = {
  "POST /key/children": { llm: true, accepted: 400 },
  "DELETE /key/children/:hash": { llm: true, path: "/key/children/none", accepted: 404 },
  "POST /runs": { llm: true, scope: "write:llm-keys", accepted: 400 },
  "GET /runs": { llm: true, scope: "read:llm-keys" },
  "GET /runs/:id": { llm: true, scope: "read:llm-keys", path: "/runs/run_none", accepted: 404 },
  "GET /dashboard/runs": {
    without: "open",
    base: "root",
    path: "/dashboard/runs",
    accepted: 404,
  },
  "GET /dashboard/runs/:id": {
    without: "open",
    base: "root",
    path: "/dashboard/runs/run_none",
    accepted: 404,
  },
  "GET /resume/:id": {
    without: "open",
    base: "root",
    path: "/resume/run_none",
    accepted: 303,
    signedIn: 404,
  },
  "POST /resume/:id": {
    without: "open",
    base: "root",
    path: "/resume/run_none",
    accepted: 303,
    signedIn: 404,
  },
  "PATCH /runs/:id": { llm: true, scope: "write:llm-keys", path: "/runs/run_none", accepted: 404 },
};
