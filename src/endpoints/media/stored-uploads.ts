import type { RequestContext } from "../../access/define-endpoint.ts";
import type { Files } from "../../files/open-files.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import type { Upload } from "../../inference/surfaces/media/uploads.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { workspaceOf } from "../account/account-fields.ts";
import { fileIdOf, noFile } from "../files/file-dialect.ts";

/** Members that name files of the workspace, with the field of a form that each stands in for. */
const fields: Readonly<Record<string, string>> = {
  images: "image",
  image: "image",
  input_references: "image",
  mask: "mask",
  markup: "markup",
  file: "file",
  file_id: "file",
  input_audio: "file",
};

/** A member of a body that names a file. */
interface NamedFile {
  param: string;
  field: string;
  shown: string;
}

/** Returns the id in a member: an object with `file_id`, or the text of an id itself. */
function idIn(value: unknown): string | undefined {
  const { file_id: id } = Object(value) as { file_id?: unknown };
  if (typeof id === "string") return id;
  return typeof value === "string" && /^file[-_]/.test(value) ? value : undefined;
}

/** Returns the files that a body names, and its other members. Throws `bad_request`. */
function namedIn(body: Record<string, unknown>): {
  named: NamedFile[];
  rest: Record<string, unknown>;
} {
  const named: NamedFile[] = [];
  const rest: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body)) {
    const field = fields[name];
    const list = Array.isArray(value) ? value : [value];
    const ids = field === undefined ? [] : list.map(idIn);
    if (field === undefined || ids.every((id) => id === undefined)) {
      rest[name] = value;
      continue;
    }
    for (const [index, shown] of ids.entries()) {
      const param = Array.isArray(value) ? `${name}[${index}]` : name;
      if (shown === undefined)
        throw badField(param, "must be a file_id, too: ids and other pictures are not mixed.");
      named.push({ param, field, shown });
    }
  }
  return { named, rest };
}

/**
 * Returns a request with the files of the workspace that its body names, as if they had been sent
 * with it: they are read while the provider is sent them. Throws `GatewayError` that names the
 * field.
 */
export async function withStoredUploads<
  Read extends { body: Record<string, unknown>; uploads: readonly Upload[] },
>(
  context: RequestContext,
  read: Read,
  { files, fileBytesMax }: { files: Files; fileBytesMax: number },
): Promise<Read> {
  const { named, rest } = namedIn(read.body);
  if (named.length === 0) return read;
  const workspaceId = workspaceOf(context as RequestContext<unknown, KnownCaller>).id;
  const uploads: Upload[] = [...read.uploads];
  for (const { param, field, shown } of named) {
    const file = await files.store.find(workspaceId, fileIdOf(shown) ?? "");
    if (file === undefined) throw noFile(shown, param);
    const size = file.object.bytes;
    if (size > fileBytesMax)
      throw new GatewayError(
        "content_too_large",
        `${param}: has more than ${fileBytesMax} bytes.`,
        {
          param,
          metadata: { limit_bytes: fileBytesMax },
        },
      );
    const content = {
      size,
      async read(start: number, length: number): Promise<Uint8Array> {
        const pieces: Uint8Array[] = [];
        const to = Math.min(start + length, size);
        for await (const piece of files.store.read(file, { from: start, to })) pieces.push(piece);
        return Buffer.concat(pieces);
      },
    };
    uploads.push({ field, filename: file.filename, type: file.mimeType, content });
  }
  return { ...read, body: rest, uploads };
}
