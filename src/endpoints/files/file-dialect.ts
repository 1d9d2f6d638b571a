import type { ErrorEncoder } from "../../http/error-envelope.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestHeaders } from "../../http/served-request.ts";
import type { FileRecord } from "../../files/file-store.ts";
import { anthropicMessages } from "../../inference/dialects/anthropic-messages/index.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId } from "../../platform/kernel/ids.ts";

/**
 * Returns whether a request on a path that two dialects share is Anthropic's, whose clients always
 * send the version.
 */
export const isAnthropic = (headers: RequestHeaders | undefined): boolean =>
  headers?.has("anthropic-version") ?? false;

/** Renders errors in the dialect of the request. */
export const encodeFileError: ErrorEncoder = (error, context) =>
  isAnthropic(context.headers)
    ? anthropicMessages.encodeError(error, context)
    : encodeContractError(error, context);

const seconds = (ms: number): number => Math.floor(ms / 1000);

/** Returns the id of a file in OpenAI's form; records have Anthropic's. */
export const openaiFileId = (id: string): string => id.replace(/^file_/, "file-");

/** Returns the id of a record for either form of it; undefined for a text that can be none. */
export const fileIdOf = (shown: string): string | undefined =>
  mayBeId(shown) ? shown.replace(/^file-/, "file_") : undefined;

/** Returns a file as OpenAI's clients see it. */
export const openaiFile = ({ object, ...file }: FileRecord) => ({
  id: openaiFileId(file.id),
  object: "file" as const,
  bytes: object.bytes,
  created_at: seconds(file.createdAtMs),
  ...(file.expiresAtMs === null ? {} : { expires_at: seconds(file.expiresAtMs) }),
  filename: file.filename,
  purpose: file.purpose,
  status: "processed" as const,
  status_details: null,
});

/** Returns a file as Anthropic's clients see it. Only what was made here can be downloaded there. */
export const anthropicFile = ({ object, ...file }: FileRecord) => ({
  id: file.id,
  type: "file" as const,
  filename: file.filename,
  mime_type: file.mimeType,
  size_bytes: object.bytes,
  created_at: new Date(file.createdAtMs).toISOString(),
  downloadable: file.isOutput,
  expires_at: file.expiresAtMs === null ? null : new Date(file.expiresAtMs).toISOString(),
});

/** Builds the refusal for a file that this workspace does not have. */
export const noFile = (shown: string, param = "file_id"): GatewayError =>
  new GatewayError("not_found", `No file ${shown.slice(0, 100)} in this workspace.`, { param });

/** Builds the refusal for bytes that the workspace's quota does not bear. */
export const quotaExceeded = ({
  usedBytes,
  quotaBytes,
}: {
  usedBytes: number;
  quotaBytes: number;
}): GatewayError =>
  new GatewayError(
    "storage_quota_exceeded",
    `The files of this workspace may take ${quotaBytes} bytes, and take ${usedBytes} now. Delete files, or have the quota raised.`,
    {
      metadata: {
        used_bytes: usedBytes,
        quota_bytes: quotaBytes,
        details: { error_code: "storage_quota_exceeded" },
      },
    },
  );

/** Control characters, and those that turn the direction of what follows, which disguise an ending. */
const hiddenCharacters = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/** Returns the last part of a path without hidden characters; what a name may contain beside. */
export function cleanFilename(name: string | undefined): string {
  const base = (name ?? "").split(/[/\\]/).at(-1) ?? "";
  const shown = base.toWellFormed().replace(hiddenCharacters, "");
  // A character of two units is not cut in half.
  const clean = shown.slice(0, 255).replace(/[\ud800-\udbff]$/, "");
  return clean === "" || /^\.+$/.test(clean) ? "file" : clean;
}

/** Returns a media type that is safe to send again, guessed from the name where none was sent. */
export function mimeTypeOf(type: string | undefined, filename: string): string {
  const written = type?.trim().toLowerCase() ?? "";
  const isNamed = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:;\s*charset=[\w-]+)?$/.test(written);
  if (isNamed && written !== "application/octet-stream") return written;
  const guessed = Bun.file(filename).type.split(";")[0] ?? "";
  return guessed === "" ? "application/octet-stream" : guessed;
}
