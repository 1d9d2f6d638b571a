/** Matches an id of a file of this gateway. Providers' own ids are passed on as they are. */
const ownId = /^file[-_][0-9a-f]{32}$/;

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A file of the workspace that a request names, with its content in base64. */
export interface RequestFile {
  /** A `file_` id. */
  id: string;
  bytes: number;
  expiresAtMs: number | null;
  filename: string;
  mimeType: string;
  base64: string;
}

/** Returns the file with an id; `param` is the field that names it. */
interface FilesOfRequest {
  of(id: string, param: string): Promise<RequestFile>;
}

const dataUrl = ({ mimeType, base64 }: RequestFile): string =>
  `data:${mimeType.split(";")[0]};base64,${base64}`;

const namedId = (value: unknown): string | undefined =>
  typeof value === "string" && ownId.test(value) ? value : undefined;

/** Returns an Anthropic source with the content in place of the id. */
function anthropicSource({ mimeType, base64 }: RequestFile): Json {
  const [type = ""] = mimeType.split(";");
  return type === "text/plain"
    ? { type: "text", media_type: type, data: Buffer.from(base64, "base64").toString("utf8") }
    : { type: "base64", media_type: type, data: base64 };
}

/** Returns a content part with the content of its file; the part itself where it names none. */
async function inlinePart(part: Json, files: FilesOfRequest, at: string): Promise<Json> {
  const { type, file, source, file_id: fileId, ...rest } = part;
  const chatId = isObject(file) ? namedId(file["file_id"]) : undefined;
  if (type === "file" && chatId !== undefined) {
    const inline = await files.of(chatId, `${at}.file.file_id`);
    const { filename } = inline;
    return { ...rest, type, file: { filename, file_data: dataUrl(inline) } };
  }
  const sourceId = isObject(source) ? namedId(source["file_id"]) : undefined;
  if (sourceId !== undefined) {
    const inline = await files.of(sourceId, `${at}.source.file_id`);
    const title = type === "document" && rest["title"] === undefined;
    return {
      ...rest,
      type,
      ...(title && { title: inline.filename }),
      source: anthropicSource(inline),
    };
  }
  const ownFileId = namedId(fileId);
  if (ownFileId === undefined) return part;
  if (type === "input_file") {
    const inline = await files.of(ownFileId, `${at}.file_id`);
    return { ...rest, type, filename: inline.filename, file_data: dataUrl(inline) };
  }
  if (type !== "input_image") return part;
  return { ...rest, type, image_url: dataUrl(await files.of(ownFileId, `${at}.file_id`)) };
}

/** Returns a value with the files of all content parts in it. */
async function inlineAll(value: unknown, files: FilesOfRequest, at: string): Promise<unknown> {
  if (Array.isArray(value))
    return Promise.all(value.map((each, index) => inlineAll(each, files, `${at}[${index}]`)));
  if (!isObject(value)) return value;
  const part = await inlinePart(value, files, at);
  const { content } = part;
  return Array.isArray(content)
    ? { ...part, content: await inlineAll(content, files, `${at}.content`) }
    : part;
}

/**
 * Returns a body with the contents of the files that its messages name by ids of this gateway, which
 * providers do not know.
 */
export async function withInlineFiles(body: Json, files: FilesOfRequest): Promise<Json> {
  const changed: Json = { ...body };
  for (const name of ["messages", "input"])
    if (Array.isArray(body[name])) changed[name] = await inlineAll(body[name], files, name);
  return changed;
}
