import type { Fields } from "../strict-vendors/rule.ts";

/** The vendors whose file APIs have doubles. */
export type FileVendor = "openai" | "anthropic" | "google";

/** A file as a vendor stores it, in the account of a credential. */
export interface StoredFile {
  /** What requests name it by. */
  id: string;
  vendor: FileVendor;
  credential: string;
  filename: string;
  type: string;
  content: Buffer;
  livesSeconds: number;
}

/** A call, as its vendor reads it. */
export interface FileCall {
  vendor: FileVendor;
  method: string;
  path: string;
  headers: Headers;
  credential: string;
  /** The fields of a form or a JSON body. */
  body: Fields;
  /** The parts of content that name a file, with the file where the account has it. */
  named: readonly { id: string; part: Fields; file: StoredFile | undefined }[];
}

/** A fact about what a vendor refuses about files. */
interface FileRule {
  id: string;
  vendor: FileVendor;
  when(call: FileCall): boolean;
  status: number;
  /** Returns the vendor's own body. */
  body(call: FileCall): unknown;
  /** The page or the report from which it is known; `recalled` where none was read. */
  source: string;
}

const uploads = ({ method, path }: FileCall): boolean => method === "POST" && path === "/files";
const missing = ({ named }: FileCall): string | undefined =>
  named.find(({ file }) => file === undefined)?.id;
const outside = (seconds: unknown, most: number): boolean =>
  !(Number(seconds) >= 3_600 && Number(seconds) <= most);

const openaiError = (message: string, param: string | null = null) => ({
  error: { message, type: "invalid_request_error", param, code: null },
});
const anthropicError = (type: string, message: string) => ({
  type: "error",
  error: { type, message },
});

const openaiPage = "https://platform.openai.com/docs/api-reference/files/create (2026-11)";

/** What the file APIs, and requests with their ids, refuse; one row a rule. */
export const fileRules: readonly FileRule[] = [
  {
    id: "purpose",
    vendor: "openai",
    when: (call) =>
      uploads(call) && !["user_data", "vision"].includes(String(call.body["purpose"])),
    status: 400,
    body: () => openaiError("purpose: not one of user_data, vision", "purpose"),
    source: openaiPage,
  },
  {
    id: "expiry",
    vendor: "openai",
    when: (call) =>
      uploads(call) &&
      (call.body["expires_after[anchor]"] !== "created_at" ||
        outside(call.body["expires_after[seconds]"], 2_592_000)),
    status: 400,
    body: () => openaiError("expires_after: out of range", "expires_after"),
    source: openaiPage,
  },
  {
    id: "known",
    vendor: "openai",
    when: (call) => missing(call) !== undefined,
    status: 400,
    body: (call) => openaiError(`No such File object: ${missing(call)}`, "file_id"),
    source: "recalled (2026-11)",
  },
  {
    id: "one-source",
    vendor: "openai",
    when: ({ named }) =>
      named.some(({ part }) =>
        ["filename", "file_data", "image_url"].some((name) => part[name] !== undefined),
      ),
    status: 400,
    body: () => openaiError("Mutually exclusive parameters: 'file_id' and 'file_data'.", "file_id"),
    source: "recalled (2026-11)",
  },
  {
    id: "expiry",
    vendor: "anthropic",
    when: (call) =>
      uploads(call) &&
      call.body["expires_in_seconds"] !== undefined &&
      outside(call.body["expires_in_seconds"], 7_776_000),
    status: 400,
    body: () => anthropicError("invalid_request_error", "expires_in_seconds: out of range"),
    source: "npm @anthropic-ai/sdk 1.11, FileUploadParams",
  },
  {
    id: "feature",
    vendor: "anthropic",
    when: ({ named, headers }) =>
      named.length > 0 &&
      !(headers.get("anthropic-beta") ?? "").split(",").includes("files-api-2025-04-14"),
    status: 400,
    body: () =>
      anthropicError(
        "invalid_request_error",
        "messages.0.content.0.document.source: Input tag 'file' found using 'type' does not match " +
          "any of the expected tags: 'base64', 'content', 'text', 'url'",
      ),
    source: "https://github.com/anthropics/anthropic-sdk-ruby/issues/127 (2025-09-08)",
  },
  {
    id: "known",
    vendor: "anthropic",
    when: (call) => missing(call) !== undefined,
    status: 404,
    body: (call) => anthropicError("not_found_error", `File not found: ${missing(call)}`),
    source: "recalled (2026-11)",
  },
  {
    id: "known",
    vendor: "google",
    when: (call) => missing(call) !== undefined,
    status: 403,
    body: (call) => ({
      error: {
        code: 403,
        message: `You do not have permission to access the File ${missing(call)} or it may not exist.`,
        status: "PERMISSION_DENIED",
      },
    }),
    source:
      "https://github.com/google-gemini/deprecated-generative-ai-python/issues/692 (2025-02-25)",
  },
];
