import type { ContractRow } from "./credential-contract.ts";

const call: ContractRow = { llm: true, accepted: 400 };

/** Rows of pictures and sound. */
export const mediaRows: Record<string, ContractRow> = {
  "POST /images": call,
  "POST /images/generations": call,
  "POST /images/edits": call,
  "POST /images/variations": call,
  "GET /images/models": { without: "optional", llm: true },
  "GET /images/models/:owner/:model/endpoints": {
    without: "optional",
    llm: true,
    path: "/images/models/nobody/nothing/endpoints",
    accepted: 404,
  },
  "GET /images/content/:token": { without: "open", path: "/images/content/none", accepted: 404 },
  "POST /audio/transcriptions": call,
  "POST /audio/translations": call,
  "POST /audio/speech": call,
};
