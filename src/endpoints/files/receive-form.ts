import { z } from "zod";
import { bodyPieces } from "../../http/uploads/body-pieces.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import type { Files } from "../../files/open-files.ts";
import type { StoredObject } from "../../files/object-store.ts";
import { boundaryOf, fieldText, formParts } from "../../http/uploads/multipart.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { quotaExceeded } from "./file-dialect.ts";

/** Bytes of a form beside its file. */
const formBytesMax = 1024 * 1024;

/** A form whose file was stored. */
export interface ReceivedForm {
  fields: ReadonlyMap<string, string>;
  file: { object: StoredObject; filename: string | undefined; type: string | undefined };
  /** The most bytes that the workspace may store. */
  quotaBytes: number;
}

/** What a form's file may be. */
interface FileRule {
  /** The field with the file. */
  field: string;
  /** The most bytes of the file. */
  bytesMax: number;
}

/** Refuses to store anything of a workspace or key that requires zero data retention. */
export function refuseRetention(
  { caller }: RequestContext<unknown, KnownCaller>,
  { inference, security }: Pick<Dependencies, "inference" | "security">,
): void {
  const { zdr } =
    caller.kind === "llm-key"
      ? inference.privacyOf(caller)
      : security.privacy.of(caller.workspace.id);
  if (!zdr) return;
  throw new GatewayError(
    "forbidden",
    "This workspace or key requires zero data retention, so the gateway stores no files of it. " +
      "Send the content in the request itself, or use a key without that requirement.",
    { metadata: { reason: "zero_data_retention" } },
  );
}

/**
 * Reads a form and stores its file while it comes, before the fields that follow it are known.
 * Throws `GatewayError`, and then nothing is stored. The caller claims the object or discards it.
 */
export async function receiveForm(
  context: RequestContext<unknown, KnownCaller>,
  { field, bytesMax }: FileRule,
  files: Files,
): Promise<ReceivedForm> {
  const { id: workspaceId, plan } = workspaceOf(context);
  const boundary = boundaryOf(context.request.headers.get("content-type"));
  const quotaBytes = files.quotaBytesOf(plan);
  const usedBytes = await files.store.bytesOf(workspaceId);
  const freeBytes = Math.max(0, quotaBytes - usedBytes);
  const limit = {
    bytesMax: Math.min(bytesMax, freeBytes),
    tooLarge: () =>
      freeBytes < bytesMax ? quotaExceeded({ usedBytes, quotaBytes }) : tooLarge(field, bytesMax),
  };
  const fields = new Map<string, string>();
  let file: ReceivedForm["file"] | undefined;
  const pieces = bodyPieces(context.request, limit.bytesMax + formBytesMax);
  try {
    for await (const part of formParts(pieces, boundary)) {
      if (part.name === field && file === undefined && part.filename !== undefined) {
        const object = await files.objects.write(workspaceId, part.content, limit);
        file = { object, filename: part.filename, type: part.type };
      } else if (part.filename === undefined) fields.set(part.name, await fieldText(part));
    }
    if (file === undefined) throw missingFile(field);
    return { fields, file, quotaBytes };
  } catch (error) {
    if (file !== undefined) await files.objects.discard(file.object.name);
    throw error instanceof GatewayError &&
      error.code === "content_too_large" &&
      freeBytes < bytesMax
      ? quotaExceeded({ usedBytes, quotaBytes })
      : error;
  }
}

const tooLarge = (field: string, bytesMax: number): GatewayError =>
  new GatewayError(
    "content_too_large",
    `${field}: is larger than the limit of ${bytesMax} bytes.`,
    {
      param: field,
      metadata: { limit_bytes: bytesMax },
    },
  );

const missingFile = (field: string): GatewayError =>
  new GatewayError("missing_required_fields", `${field}: is required. Send it as a form's file.`, {
    param: field,
  });

/** When a file expires, as OpenAI's clients write it. */
export const expirySchema = z.object({
  anchor: z.literal("created_at"),
  seconds: z.int().min(3_600).max(2_592_000),
});

/** Returns a field's integer within bounds; undefined where it is absent. */
export function integerField(
  text: string | undefined,
  { param, minimum, maximum }: { param: string; minimum: number; maximum: number },
): number | undefined {
  if (text === undefined || text === "") return undefined;
  const value = Number(text);
  if (!/^\d{1,15}$/.test(text) || value < minimum || value > maximum)
    throw badField(param, `must be an integer from ${minimum} to ${maximum}.`);
  return value;
}
