import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { filePurposes, type FilePurpose, type FileRecord } from "../../files/file-store.ts";
import { lazily } from "../../http/endpoint.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { contentResponse, rangeAnswers } from "./content-response.ts";
import {
  anthropicFile,
  cleanFilename,
  encodeFileError,
  fileIdOf,
  isAnthropic,
  mimeTypeOf,
  noFile,
  openaiFile,
  quotaExceeded,
} from "./file-dialect.ts";
import { integerField, type ReceivedForm, receiveForm, refuseRetention } from "./receive-form.ts";

/** The most bytes of a file, and of the input of a batch (OpenAI and Anthropic: the same). */
const fileBytesMax = 512 * 1024 * 1024;
export const batchInputBytesMax = 200 * 1024 * 1024;

/** How long the input of a batch is kept where its caller does not say (OpenAI: 30 days). */
const batchInputMs = 30 * dayMs;

/** The credentials that may use files. */
export const fileAccess = { llmKey: true, managementScope: "inference", session: true } as const;

type FileContext = RequestContext<unknown, KnownCaller>;

type FileDependencies = Pick<Dependencies, "files" | "inference" | "security" | "clock">;

/** A file in either dialect. */
const fileSchema = lazily(() =>
  z.union([
    z
      .object({
        id: z.string(),
        object: z.literal("file"),
        bytes: z.int(),
        created_at: z.int(),
        expires_at: z.int().optional(),
        filename: z.string(),
        purpose: z.string(),
        status: z.literal("processed"),
        status_details: z.null(),
      })
      .meta({ id: "File" }),
    z
      .object({
        id: z.string(),
        type: z.literal("file"),
        filename: z.string(),
        mime_type: z.string(),
        size_bytes: z.int(),
        created_at: z.string(),
        downloadable: z.boolean(),
        expires_at: z.string().nullable(),
      })
      .meta({ id: "AnthropicFile" }),
  ]),
);

/** Returns a file in the dialect of the request. */
const shownFile = ({ request }: FileContext, file: FileRecord) =>
  isAnthropic(request.headers) ? anthropicFile(file) : openaiFile(file);

/** Returns the purpose and the expiry that the fields of OpenAI's form name. */
function openaiFields(fields: ReceivedForm["fields"], nowMs: number) {
  const purpose = filePurposes.find((each) => each === fields.get("purpose"));
  if (purpose === undefined)
    throw badField("purpose", `must be one of ${filePurposes.join(", ")}.`);
  const anchor = fields.get("expires_after[anchor]");
  if (anchor !== undefined && anchor !== "created_at")
    throw badField("expires_after[anchor]", "must be created_at.");
  const seconds = integerField(fields.get("expires_after[seconds]"), {
    param: "expires_after[seconds]",
    minimum: 3_600,
    maximum: 2_592_000,
  });
  const lifetimeMs =
    seconds !== undefined ? seconds * 1_000 : purpose === "batch" ? batchInputMs : undefined;
  return { purpose, expiresAtMs: lifetimeMs === undefined ? null : nowMs + lifetimeMs };
}

/** Returns the same for Anthropic's form, which has no purposes. */
function anthropicFields(fields: ReceivedForm["fields"], nowMs: number) {
  const seconds = integerField(fields.get("expires_in_seconds"), {
    param: "expires_in_seconds",
    minimum: 3_600,
    maximum: 7_776_000,
  });
  const purpose: FilePurpose = "user_data";
  return { purpose, expiresAtMs: seconds === undefined ? null : nowMs + seconds * 1_000 };
}

/** Makes a file of a form's object. Throws `GatewayError`, and then nothing is stored. */
async function keepFile(
  context: FileContext,
  { fields, file: { object, filename, type }, quotaBytes }: ReceivedForm,
  { files, clock }: FileDependencies,
): Promise<FileRecord> {
  try {
    const read = isAnthropic(context.request.headers) ? anthropicFields : openaiFields;
    const { purpose, expiresAtMs } = read(fields, clock.nowMs());
    if (purpose === "batch" && object.bytes > batchInputBytesMax)
      throw new GatewayError(
        "content_too_large",
        `file: the input of a batch has at most ${batchInputBytesMax} bytes. Split it over several batches.`,
        { param: "file", metadata: { limit_bytes: batchInputBytesMax } },
      );
    const name = cleanFilename(filename);
    const { caller } = context;
    const facts = {
      keyId: caller.kind === "session" ? null : caller.key.id,
      filename: name,
      mimeType: mimeTypeOf(type, name),
      purpose,
      isOutput: false,
      expiresAtMs,
    };
    const added = await files.store.add(object, facts, { bytesMax: quotaBytes });
    if (added !== undefined) return added;
  } catch (error) {
    await files.objects.discard(object.name);
    throw error;
  }
  const usedBytes = await files.store.bytesOf(object.workspaceId);
  throw quotaExceeded({ usedBytes, quotaBytes });
}

/** Stores a file. */
export const createFile = defineEndpoint<FileDependencies, undefined, typeof fileAccess>({
  method: "POST",
  path: "/files",
  base: "api",
  access: fileAccess,
  counting: "at-door",
  unaudited: true,
  bodyBytesMax: fileBytesMax,
  tag: "Files",
  summary: "Upload a file.",
  description:
    "A form with the file in `file`, and its `purpose`. Requests that send `anthropic-version` use Anthropic's form: no purpose, and " +
    "`expires_in_seconds`. The content is encrypted at rest. It counts towards the storage of the workspace until it is deleted or " +
    "expires. Workspaces and keys with zero data retention cannot store files.",
  rawBodyType: "multipart/form-data",
  rawBody: z.object({
    file: z.string().meta({ format: "binary" }),
    purpose: z.enum(filePurposes).optional().describe("Required, except with anthropic-version."),
    "expires_after[anchor]": z.literal("created_at").optional(),
    "expires_after[seconds]": z.int().min(3_600).max(2_592_000).optional(),
    expires_in_seconds: z
      .int()
      .min(3_600)
      .max(7_776_000)
      .optional()
      .describe("With anthropic-version only."),
  }),
  response: fileSchema,
  encodeError: encodeFileError,
  async handle(context, dependencies) {
    refuseRetention(context, dependencies);
    const rule = { field: "file", bytesMax: fileBytesMax };
    const form = await receiveForm(context, rule, dependencies.files);
    return context.json(shownFile(context, await keepFile(context, form, dependencies)));
  },
});

const listQuery = z.object({
  purpose: z.string().optional(),
  limit: z.string().optional(),
  order: z.enum(["asc", "desc"]).optional(),
  after: z.string().optional(),
  page: z.string().optional().describe("With anthropic-version: the next_page of the last answer."),
  "ids[]": z.string().optional().describe("With anthropic-version: only these files."),
  after_id: z.string().optional().describe("With anthropic-version."),
  before_id: z.string().optional().describe("With anthropic-version."),
  beta: z.string().optional().describe("Ignored; Anthropic's beta clients send it."),
});

/** Returns the limit of a list. Throws `bad_request`. */
function limitOf(text: string | null, { most, usual }: { most: number; usual: number }): number {
  return integerField(text ?? undefined, { param: "limit", minimum: 1, maximum: most }) ?? usual;
}

/**
 * Returns the record id that a parameter of a list names. The file may have been deleted since the
 * page before was read. Throws `bad_request` for a text that is no id.
 */
function edgeOf(query: URLSearchParams, param: string): string | undefined {
  const shown = query.get(param);
  if (shown === null || shown === "") return undefined;
  const id = fileIdOf(shown);
  if (id === undefined || !/^file_[0-9a-f]{32}$/.test(id)) throw badField(param, "names no file.");
  return id;
}

/** Lists files in OpenAI's form. `has_more` is true only where another page has a file. */
async function listForOpenai(context: FileContext, { files }: FileDependencies) {
  const { id: workspaceId, plan } = workspaceOf(context);
  const { query } = context;
  const order = query.get("order") ?? "desc";
  if (order !== "asc" && order !== "desc") throw badField("order", "must be asc or desc.");
  const page = await files.store.list({
    workspaceId,
    limit: limitOf(query.get("limit"), { most: 10_000, usual: 10_000 }),
    order,
    after: edgeOf(query, "after"),
    purpose: query.get("purpose") ?? undefined,
  });
  const data = page.files.map(openaiFile);
  return {
    object: "list" as const,
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: page.hasMore,
    ...(context.caller.kind === "session" && {
      storage: {
        used_bytes: await files.store.bytesOf(workspaceId),
        quota_bytes: files.quotaBytesOf(plan),
      },
    }),
  };
}

/** Lists files in Anthropic's form, with the fields of the paging of both its versions. */
async function listForAnthropic(context: FileContext, { files }: FileDependencies) {
  const { query } = context;
  const ids = [...query.getAll("ids[]"), ...query.getAll("ids")].map(
    (shown) => fileIdOf(shown) ?? "",
  );
  const page = await files.store.list({
    workspaceId: workspaceOf(context).id,
    limit: limitOf(query.get("limit"), { most: 1_000, usual: 20 }),
    order: "desc",
    after: edgeOf(query, "page") ?? edgeOf(query, "after_id"),
    before: edgeOf(query, "before_id"),
    ...(ids.length > 0 && { ids }),
  });
  const data = page.files.map(anthropicFile);
  const last = data.at(-1)?.id ?? null;
  return {
    data,
    first_id: data[0]?.id ?? null,
    last_id: last,
    has_more: page.hasMore,
    next_page: page.hasMore ? last : null,
  };
}

/** Lists the files of the workspace. */
export const listFiles = defineEndpoint<FileDependencies, undefined, typeof fileAccess>({
  method: "GET",
  path: "/files",
  base: "api",
  access: fileAccess,
  counting: "at-door",
  tag: "Files",
  summary: "List files.",
  description:
    "Newest first. In OpenAI's form `after` is the id behind which the page begins; with `anthropic-version` that is `page`, or " +
    "`after_id` and `before_id`.",
  query: listQuery,
  response: () =>
    z.object({
      object: z.literal("list").optional(),
      data: z.array(fileSchema()),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
      has_more: z.boolean(),
      next_page: z.string().nullable().optional(),
      storage: z
        .object({
          used_bytes: z.int().describe("Bytes that the workspace stores."),
          quota_bytes: z.int().describe("The most bytes that the workspace may store."),
        })
        .optional()
        .describe("Storage of the workspace; for people who are signed in."),
    }),
  encodeError: encodeFileError,
  async handle(context, dependencies) {
    const list = isAnthropic(context.request.headers) ? listForAnthropic : listForOpenai;
    return context.json(await list(context, dependencies));
  },
});

/** Returns the file that the path names. Throws `not_found`. */
async function fileOf(context: FileContext, { files }: FileDependencies): Promise<FileRecord> {
  const shown = context.param("id");
  const id = fileIdOf(shown);
  const file = id && (await files.store.find(workspaceOf(context).id, id));
  if (file === undefined || file === "") throw noFile(shown);
  return file;
}

const oneFile = {
  base: "api",
  access: fileAccess,
  counting: "at-door",
  tag: "Files",
  query: z.object({ beta: z.string().optional() }),
  encodeError: encodeFileError,
} as const;

/** Returns a file's record. */
export const getFile = defineEndpoint<FileDependencies, undefined, typeof fileAccess>({
  ...oneFile,
  method: "GET",
  path: "/files/:id",
  summary: "Show a file.",
  response: fileSchema,
  async handle(context, dependencies) {
    return context.json(shownFile(context, await fileOf(context, dependencies)));
  },
});

/** Returns a file's content. */
export const fileContent = defineEndpoint<FileDependencies, undefined, typeof fileAccess>({
  ...oneFile,
  method: "GET",
  path: "/files/:id/content",
  summary: "Download the content of a file.",
  description:
    "The bytes with their content type, as an attachment that browsers neither show nor guess the type of. Takes one range. With " +
    "`anthropic-version`, only files that the gateway made can be downloaded, as at Anthropic.",
  otherResponseTypes: ["application/octet-stream"],
  furtherAnswers: rangeAnswers,
  async handle(context, dependencies) {
    const file = await fileOf(context, dependencies);
    if (isAnthropic(context.request.headers) && !file.isOutput)
      throw new GatewayError(
        "bad_request",
        "This file was uploaded, and only files that were made here can be downloaded.",
        { param: "file_id", metadata: { details: { error_code: "file_not_downloadable" } } },
      );
    return contentResponse(context, { store: dependencies.files.store, file });
  },
});

/** Deletes a file. */
export const deleteFile = defineEndpoint<FileDependencies, undefined, typeof fileAccess>({
  ...oneFile,
  method: "DELETE",
  path: "/files/:id",
  summary: "Delete a file.",
  description: "A batch that is running keeps the content of its input until it ends.",
  response: () =>
    z.union([
      z.object({ id: z.string(), object: z.literal("file"), deleted: z.literal(true) }),
      z.object({ id: z.string(), type: z.literal("file_deleted") }),
    ]),
  async handle(context, dependencies) {
    const file = await fileOf(context, dependencies);
    const deleted = await dependencies.files.store.delete(workspaceOf(context).id, file.id);
    if (deleted === undefined) throw noFile(context.param("id"));
    return context.json(
      isAnthropic(context.request.headers)
        ? { id: deleted.id, type: "file_deleted" }
        : { id: openaiFile(deleted).id, object: "file", deleted: true },
    );
  },
});
