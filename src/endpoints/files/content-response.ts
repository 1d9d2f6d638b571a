import type { RequestContext } from "../../access/define-endpoint.ts";
import type { ByteRange } from "../../files/file-cipher.ts";
import type { FileRecord, FileStore } from "../../files/file-store.ts";

/** Returns a name as a parameter of a header, also for clients that read ASCII alone (RFC 6266). */
function disposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(filename).replace(
    /['()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/**
 * Returns the range that a request asks for (RFC 9110, 14.2): undefined for the whole, and
 * `unsatisfiable` where it begins behind the end. Several ranges at once are answered whole.
 */
function rangeOf(header: string | null, bytes: number): ByteRange | "unsatisfiable" | undefined {
  const [, first = "", last = ""] =
    /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  if (first === "") {
    const from = Math.max(0, bytes - Number(last));
    return Number(last) === 0 || bytes === 0 ? "unsatisfiable" : { from, to: bytes };
  }
  const from = Number(first);
  const to = last === "" ? bytes : Math.min(bytes, Number(last) + 1);
  if (last !== "" && Number(last) < from) return undefined;
  return from >= bytes ? "unsatisfiable" : { from, to };
}

/** Reads a content as the client takes it. Throws where its storage does not begin to send it. */
async function streamOf(pieces: AsyncIterable<Uint8Array>): Promise<ReadableStream<Uint8Array>> {
  const iterator = pieces[Symbol.asyncIterator]();
  let first: IteratorResult<Uint8Array> | undefined = await iterator.next();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = first ?? (await iterator.next());
      first = undefined;
      if (done) controller.close();
      else if (value.byteLength > 0) controller.enqueue(value);
      else await this.pull?.(controller);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

/** The meanings of the statuses of ranges (RFC 9110, 15.3.7 and 15.5.17). */
export const rangeAnswers = {
  206: "The range that was asked for.",
  416: "The range begins behind the end of the content, whose length Content-Range has.",
};

/**
 * Returns the content of a file as a download, or the range that was asked for. Browsers neither
 * show it nor run what is in it.
 */
export async function contentResponse(
  { request, headers }: Pick<RequestContext, "request" | "headers">,
  { store, file }: { store: FileStore; file: FileRecord },
): Promise<Response> {
  const { bytes, name } = file.object;
  const etag = `"${name}"`;
  // A client that has the beginning of another content is sent the whole (RFC 9110, 13.1.5).
  const isSame = (request.headers.get("if-range") ?? etag) === etag;
  // Only GET has ranges (RFC 9110, 14.2); HEAD describes the whole.
  const isHead = request.method === "HEAD";
  const range = isSame && !isHead ? rangeOf(request.headers.get("range"), bytes) : undefined;
  const shared = { ...headers, "accept-ranges": "bytes", "x-content-type-options": "nosniff" };
  if (range === "unsatisfiable")
    return new Response(null, {
      status: 416,
      headers: { ...shared, "content-range": `bytes */${bytes}` },
    });
  const { from, to } = range ?? { from: 0, to: bytes };
  return new Response(isHead ? null : await streamOf(store.read(file, { from, to })), {
    status: range === undefined ? 200 : 206,
    headers: {
      ...shared,
      "content-type": file.mimeType,
      "content-length": String(to - from),
      "content-disposition": disposition(file.filename),
      "content-security-policy": "sandbox; default-src 'none'",
      "cache-control": "private, no-store",
      etag,
      ...(range === undefined ? {} : { "content-range": `bytes ${from}-${to - 1}/${bytes}` }),
    },
  });
}
