import { claudeCode } from "./claude-code-contract.ts";
import type { ContractRow } from "./credential-contract.ts";

const model = "acme/nothing";

const bedrockVerbs = [
  ...["converse", "converse-stream", "invoke", "invoke-with-response-stream", "count-tokens"],
];

/** Rows of the paths that other vendors' clients ask for: Claude Code's, Ollama's and Google's. */
export const doors: Record<string, ContractRow> = {
  ...claudeCode,
  "POST /completions": { llm: true, accepted: 400 },
  "POST /fim/completions": { llm: true, accepted: 400 },
  "POST /openai/deployments/:name/chat/completions": {
    llm: true,
    base: "root",
    path: "/openai/deployments/none/chat/completions",
    accepted: 400,
  },
  ...Object.fromEntries(
    bedrockVerbs.map((verb) => [
      `POST /model/:id/${verb}`,
      { llm: true, base: "root", path: `/model/none/${verb}`, accepted: 400 } as const,
    ]),
  ),
  "POST /v1/projects/:project/locations/:location/publishers/anthropic/models/:model": {
    llm: true,
    base: "root",
    path: "/v1/projects/p/locations/l/publishers/anthropic/models/nothing:rawPredict",
    accepted: 400,
  },
  "POST /api/chat": { llm: true, base: "root", accepted: 400 },
  "POST /api/generate": { llm: true, base: "root", accepted: 400 },
  "GET /api/tags": { llm: true, base: "root" },
  "POST /api/show": { llm: true, base: "root", accepted: 404 },
  "GET /api/ps": { llm: true, base: "root" },
  "GET /api/version": { without: "open", base: "root" },
  "POST /api/embed": { llm: true, base: "root", accepted: 400 },
  "POST /api/embeddings": { llm: true, base: "root", accepted: 400 },
  "POST /ollama/v1/chat/completions": { llm: true, base: "root", accepted: 400 },
  "GET /ollama": { without: "open", base: "root" },
  "POST /api/pull": { without: "open", base: "root", accepted: 404 },
  "DELETE /api/delete": { without: "open", base: "root", accepted: 404 },
  "POST /v1beta/models/:model": {
    llm: true,
    base: "root",
    path: `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
    accepted: 400,
  },
  "POST /models/:id": { llm: true, path: "/models/nothing:generateContent", accepted: 400 },
  "POST /models/:owner/:model": {
    llm: true,
    path: `/models/${model}:generateContent`,
    accepted: 400,
  },
  "GET /v1beta/models": { without: "optional", llm: true, base: "root" },
  "GET /v1beta/models/:model": {
    without: "optional",
    llm: true,
    base: "root",
    path: "/v1beta/models/nothing",
    accepted: 404,
  },
  ...Object.fromEntries(
    ["GET", "POST", "PUT", "PATCH", "DELETE"].map(
      (method) =>
        [
          `${method} /p/:provider/*`,
          { llm: true, path: "/p/nobody/v1/none", accepted: 404 },
        ] as const,
    ),
  ),
  ...Object.fromEntries(
    ["GET", "POST", "DELETE"].map(
      (method) =>
        [
          `${method} /upload/v1beta/*`,
          { without: "open", base: "root", path: "/upload/v1beta/files/none", accepted: 404 },
        ] as const,
    ),
  ),
};
