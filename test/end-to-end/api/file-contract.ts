import type { ContractRow } from "./credential-contract.ts";

/** Callers that use models, and people whose role may. */
const users = { llm: true, scope: "inference" } as const;

const noMessages = "/messages/batches/msgbatch_none";

/** Rows of files, uploads, batches and documents. */
export const filesAndBatches: Record<string, ContractRow> = {
  "POST /ocr/extract": { llm: true, accepted: 400 },
  "POST /documents/parse": { llm: true, accepted: 400 },
  "POST /files": { ...users, accepted: 400 },
  "GET /files": users,
  "GET /files/:id": { ...users, path: "/files/file-none", accepted: 404 },
  "GET /files/:id/content": { ...users, path: "/files/file-none/content", accepted: 404 },
  "DELETE /files/:id": { ...users, path: "/files/file-none", accepted: 404 },
  "POST /uploads": { ...users, accepted: 400 },
  "POST /uploads/:id/parts": { ...users, path: "/uploads/upload_none/parts", accepted: 404 },
  "POST /uploads/:id/complete": { ...users, path: "/uploads/upload_none/complete", accepted: 400 },
  "POST /uploads/:id/cancel": { ...users, path: "/uploads/upload_none/cancel", accepted: 404 },
  "POST /batches": { llm: true, accepted: 400 },
  "GET /batches": users,
  "GET /batches/:id": { ...users, path: "/batches/batch_none", accepted: 404 },
  "POST /batches/:id/cancel": { ...users, path: "/batches/batch_none/cancel", accepted: 404 },
  "POST /messages/batches": { llm: true, accepted: 400 },
  "GET /messages/batches": users,
  "GET /messages/batches/:id": { ...users, path: noMessages, accepted: 404 },
  "DELETE /messages/batches/:id": { ...users, path: noMessages, accepted: 404 },
  "POST /messages/batches/:id/cancel": { ...users, path: `${noMessages}/cancel`, accepted: 404 },
  "GET /messages/batches/:id/results": { ...users, path: `${noMessages}/results`, accepted: 404 },
};
