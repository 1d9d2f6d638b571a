import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { filePurposes, type FileRecord } from "../../files/file-store.ts";
import type { Completion, Upload } from "../../files/upload-store.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { lazily } from "../../http/endpoint.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId } from "../../platform/kernel/ids.ts";
import { accountBodyBytesMax, workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { cleanFilename, mimeTypeOf, openaiFile, quotaExceeded } from "./file-dialect.ts";
import { batchInputBytesMax, fileAccess } from "./files.ts";
import { receiveForm, refuseRetention, expirySchema } from "./receive-form.ts";

/** The most bytes of a part, and of a whole upload (OpenAI). */
const partBytesMax = 64 * 1024 * 1024;
const uploadBytesMax = 8 * 1024 ** 3;

type UploadContext = RequestContext<unknown, KnownCaller>;
type UploadDependencies = Pick<Dependencies, "files" | "inference" | "security">;

const uploadSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("upload"),
      bytes: z.int(),
      created_at: z.int(),
      expires_at: z.int(),
      filename: z.string(),
      purpose: z.string(),
      status: z.enum(["pending", "completed", "cancelled", "expired"]),
      file: z.record(z.string(), z.unknown()).nullable(),
    })
    .meta({ id: "Upload" }),
);

const seconds = (ms: number): number => Math.floor(ms / 1000);

const shownUpload = (upload: Upload, file: FileRecord | undefined) => ({
  id: upload.id,
  object: "upload" as const,
  bytes: upload.bytes,
  created_at: seconds(upload.createdAtMs),
  expires_at: seconds(upload.expiresAtMs),
  filename: upload.filename,
  purpose: upload.purpose,
  status: upload.status,
  file: file === undefined ? null : openaiFile(file),
});

const bodySchema = z.object({
  bytes: z.int().min(1).max(uploadBytesMax),
  filename: z.string().min(1).max(1_000),
  mime_type: z.string().max(200),
  purpose: z.enum(filePurposes),
  expires_after: expirySchema.optional(),
});

/** Begins an upload in parts. */
export const createUpload = defineEndpoint<
  UploadDependencies,
  z.output<typeof bodySchema>,
  typeof fileAccess
>({
  method: "POST",
  path: "/uploads",
  base: "api",
  access: fileAccess,
  counting: "at-door",
  idempotent: true,
  unaudited: true,
  bodyBytesMax: accountBodyBytesMax,
  tag: "Files",
  summary: "Begin an upload in parts.",
  description:
    "For files that are larger than one request should be, up to 8 GiB. Add parts of at most 64 MiB, in any order and concurrently, " +
    "then complete the upload with their ids in the order of their content. An upload that is not completed within an hour expires.",
  body: bodySchema,
  response: uploadSchema,
  encodeError: encodeContractError,
  async handle(context, dependencies) {
    refuseRetention(context, dependencies);
    const { files } = dependencies;
    const { bytes, purpose, expires_after: expiry, ...body } = context.body;
    const { id: workspaceId, plan } = workspaceOf(context);
    const [usedBytes, quotaBytes] = [
      await files.store.bytesOf(workspaceId),
      files.quotaBytesOf(plan),
    ];
    if (usedBytes + bytes > quotaBytes) throw quotaExceeded({ usedBytes, quotaBytes });
    if (purpose === "batch" && bytes > batchInputBytesMax)
      throw badField("bytes", `the input of a batch has at most ${batchInputBytesMax} bytes.`);
    const { caller } = context;
    const filename = cleanFilename(body.filename);
    const upload = await files.uploads.begin({
      workspaceId,
      keyId: caller.kind === "session" ? null : caller.key.id,
      filename,
      mimeType: mimeTypeOf(body.mime_type, filename),
      purpose,
      bytes,
      fileExpiresSeconds: expiry?.seconds ?? (purpose === "batch" ? 2_592_000 : null),
    });
    return context.json(shownUpload(upload, undefined));
  },
});

/** Returns the upload that the path names. Throws `not_found`. */
async function uploadOf(context: UploadContext, { files }: UploadDependencies): Promise<Upload> {
  const id = context.param("id");
  const upload = mayBeId(id) ? await files.uploads.find(workspaceOf(context).id, id) : undefined;
  if (upload !== undefined) return upload;
  throw new GatewayError("not_found", `No upload ${id.slice(0, 100)} in this workspace.`, {
    param: "upload_id",
  });
}

const notPending = ({ status }: Pick<Upload, "status">): GatewayError =>
  new GatewayError(
    "bad_request",
    `This upload is ${status}, so it cannot be changed any more. Begin another one.`,
    { param: "upload_id" },
  );

/** Adds a part to an upload. */
export const addUploadPart = defineEndpoint<UploadDependencies, undefined, typeof fileAccess>({
  method: "POST",
  path: "/uploads/:id/parts",
  base: "api",
  access: fileAccess,
  counting: "at-door",
  unaudited: true,
  bodyBytesMax: partBytesMax,
  tag: "Files",
  summary: "Add a part to an upload.",
  rawBodyType: "multipart/form-data",
  rawBody: z.object({ data: z.string().meta({ format: "binary" }) }),
  response: () =>
    z.object({
      id: z.string(),
      object: z.literal("upload.part"),
      created_at: z.int(),
      upload_id: z.string(),
    }),
  encodeError: encodeContractError,
  async handle(context, dependencies) {
    const { files } = dependencies;
    const upload = await uploadOf(context, dependencies);
    if (upload.status !== "pending") throw notPending(upload);
    refuseRetention(context, dependencies);
    const form = await receiveForm(context, { field: "data", bytesMax: partBytesMax }, files);
    const { quotaBytes } = form;
    const part = await files.uploads.addPart(upload, form.file.object, quotaBytes);
    if ("id" in part)
      return context.json({
        id: part.id,
        object: "upload.part",
        created_at: seconds(Number.parseInt(part.id.slice(5, 17), 16)),
        upload_id: upload.id,
      });
    if (part.reason === "not_pending") throw notPending(await uploadOf(context, dependencies));
    const usedBytes = await files.store.bytesOf(upload.workspaceId);
    throw quotaExceeded({ usedBytes, quotaBytes });
  },
});

const completeSchema = z.object({
  part_ids: z.array(z.string()).min(1).max(10_000),
  md5: z
    .string()
    .regex(/^[0-9a-fA-F]{32}$/, "must be 32 hexadecimal digits")
    .optional(),
});

/** Returns why an upload could not be completed. */
async function incomplete(
  reason: Extract<Completion, { ok: false }>["reason"],
  { context, dependencies }: { context: UploadContext; dependencies: UploadDependencies },
): Promise<GatewayError> {
  const { id, plan } = workspaceOf(context);
  const { files } = dependencies;
  switch (reason) {
    case "not_pending":
      return notPending(await uploadOf(context, dependencies));
    case "unknown_part":
      return badField("part_ids", "must name parts of this upload, each once.");
    case "wrong_length":
      return badField("part_ids", "the parts together do not have the bytes that were declared.");
    case "wrong_md5":
      return badField("md5", "is not the checksum of the parts in this order.");
    case "quota":
      return quotaExceeded({
        usedBytes: await files.store.bytesOf(id),
        quotaBytes: files.quotaBytesOf(plan),
      });
  }
}

/** Makes a file of an upload's parts. */
export const completeUpload = defineEndpoint<
  UploadDependencies,
  z.output<typeof completeSchema>,
  typeof fileAccess
>({
  method: "POST",
  path: "/uploads/:id/complete",
  base: "api",
  access: fileAccess,
  counting: "at-door",
  idempotent: true,
  unaudited: true,
  bodyBytesMax: 1024 * 1024,
  tag: "Files",
  summary: "Complete an upload.",
  body: completeSchema,
  response: uploadSchema,
  encodeError: encodeContractError,
  async handle(context, dependencies) {
    const { files } = dependencies;
    const upload = await uploadOf(context, dependencies);
    const { part_ids: partIds, md5 } = context.body;
    const bytesMax = files.quotaBytesOf(workspaceOf(context).plan);
    const completed = await files.uploads.complete(upload, { partIds, md5, bytesMax });
    if (!completed.ok) throw await incomplete(completed.reason, { context, dependencies });
    return context.json(shownUpload(completed.upload, completed.file));
  },
});

/** Cancels an upload. */
export const cancelUpload = defineEndpoint<UploadDependencies, undefined, typeof fileAccess>({
  method: "POST",
  path: "/uploads/:id/cancel",
  base: "api",
  access: fileAccess,
  counting: "at-door",
  idempotent: true,
  unaudited: true,
  tag: "Files",
  summary: "Cancel an upload.",
  response: uploadSchema,
  encodeError: encodeContractError,
  async handle(context, dependencies) {
    const upload = await uploadOf(context, dependencies);
    if (!(await dependencies.files.uploads.cancel(upload)))
      throw notPending(await uploadOf(context, dependencies));
    return context.json(shownUpload({ ...upload, status: "cancelled" }, undefined));
  },
});
