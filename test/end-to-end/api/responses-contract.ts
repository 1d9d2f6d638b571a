import type { ContractRow } from "./credential-contract.ts";

/** Rows of responses: created over HTTP and over sockets, and stored. */
export const responsesRows: Record<string, ContractRow> = {
  "POST /realtime/client_secrets": { llm: true, accepted: 400 },
  "POST /realtime/sessions": { llm: true, accepted: 400 },
  "POST /realtime/transcription_sessions": { llm: true, accepted: 400 },
  "POST /realtime/translations/client_secrets": { llm: true, accepted: 400 },
  "POST /realtime/calls": { llm: true, accepted: 501 },
  "POST /live/*": { llm: true, accepted: 501 },
  "GET /live/*": { llm: true, socket: true, accepted: 501 },
  "GET /realtime/translations": { llm: true, socket: true, accepted: 400 },
  "GET /realtime": { llm: true, socket: true, accepted: 400 },
  "GET /responses": { llm: true, socket: true, accepted: 400 },
  "POST /responses/compact": { llm: true, accepted: 400 },
  "POST /responses/input_tokens": { llm: true, accepted: 400 },
  "POST /responses": { llm: true, accepted: 400 },
  "GET /responses/:id": { llm: true, path: "/responses/resp_none", accepted: 404 },
  "DELETE /responses/:id": { llm: true, path: "/responses/resp_none", accepted: 404 },
  "POST /responses/:id/cancel": { llm: true, path: "/responses/resp_none/cancel", accepted: 404 },
  "GET /responses/:id/input_items": {
    llm: true,
    path: "/responses/resp_none/input_items",
    accepted: 404,
  },
};
