import type { RequestContext } from "../../access/define-endpoint.ts";
import type { Files } from "../../files/open-files.ts";
import { type RequestFile, withInlineFiles } from "../../inference/dialects/file-parts.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import { fileIdOf, noFile } from "./file-dialect.ts";

/** The most bytes of all files of a request, whose content is sent with it. */
const inlineBytesMax = 24 * 1024 * 1024;

/** Reads the files of a request, each once. */
class RequestFiles {
  private readonly read = new Map<string, Promise<RequestFile>>();
  private readonly files: Files;
  private readonly workspaceId: string;
  private readonly reserve: (bytes: number) => void;
  private bytes = 0;

  constructor(parts: { files: Files; workspaceId: string; reserve: (bytes: number) => void }) {
    this.files = parts.files;
    this.workspaceId = parts.workspaceId;
    this.reserve = parts.reserve;
  }

  /** Returns the files that were read. */
  all(): Promise<RequestFile[]> {
    return Promise.all(this.read.values());
  }

  /** Returns a file with its content. Throws `GatewayError` that names the field. */
  of(shown: string, param: string): Promise<RequestFile> {
    const known = this.read.get(shown) ?? this.readNow(shown, param);
    this.read.set(shown, known);
    return known;
  }

  private async readNow(shown: string, param: string): Promise<RequestFile> {
    const id = fileIdOf(shown) ?? "";
    const file = await this.files.store.find(this.workspaceId, id);
    if (file === undefined) throw noFile(shown, param);
    this.bytes += file.object.bytes;
    if (this.bytes > inlineBytesMax)
      throw new GatewayError(
        "content_too_large",
        `${param}: the files of a request have at most ${inlineBytesMax} bytes together.`,
        { param, metadata: { limit_bytes: inlineBytesMax } },
      );
    // The content is in memory as bytes and as base64, and again in the body.
    this.reserve(file.object.bytes * 4);
    const pieces: Uint8Array[] = [];
    for await (const piece of this.files.store.read(file)) pieces.push(piece);
    const { filename, mimeType, expiresAtMs, object } = file;
    const base64 = Buffer.concat(pieces).toString("base64");
    return { id, bytes: object.bytes, expiresAtMs, filename, mimeType, base64 };
  }
}

/**
 * Returns a request with the contents of the files that it names in messages, and these files:
 * providers do not know this gateway's ids. Throws `GatewayError` for a file that the workspace does not have.
 */
export async function withFileContents(
  context: RequestContext,
  { body, files }: { body: Record<string, unknown>; files: Files },
): Promise<{ text: string; body: Record<string, unknown>; files: RequestFile[] }> {
  const requestFiles = new RequestFiles({
    files,
    workspaceId: workspaceOf(context as RequestContext<unknown, KnownCaller>).id,
    reserve: (bytes) => context.request.memory.add(bytes),
  });
  const changed = await withInlineFiles(body, requestFiles);
  return { text: JSON.stringify(changed), body: changed, files: await requestFiles.all() };
}
