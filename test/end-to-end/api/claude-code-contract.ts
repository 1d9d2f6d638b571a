import type { ContractRow } from "./credential-contract.ts";

/** Rows of the paths that Claude Code asks below the address that it signed in to. */
export const claudeCode: Record<string, ContractRow> = {
  "GET /managed/settings": { llm: true, ofItself: true, base: "root", accepted: 404 },
  "GET /api/oauth/usage": { llm: true, ofItself: true, base: "root" },
  "POST /v1/metrics": { llm: true, ofItself: true, base: "root" },
  "POST /v1/logs": { llm: true, ofItself: true, base: "root" },
  "POST /v1/traces": { llm: true, ofItself: true, base: "root" },
};
