import { hourMs } from "../../../platform/kernel/clock.ts";
import { type ProviderApi, ProviderCallError } from "../batches/provider-api.ts";
import {
  ignoreGone,
  markedName,
  mediaTypeOf,
  type ProviderFileApi,
  uploadedId,
  vendorLeastMs,
} from "./provider-file-api.ts";

/** Its clients choose the names of files, so that one is known before its upload is answered. */
const nameOf = (marker: string): string => `files/sy-${marker}`;

/** Files of the Gemini API. Source: https://ai.google.dev/gemini-api/docs/files */
export function googleFiles(api: ProviderApi): ProviderFileApi {
  const { origin, pathname } = new URL(api.baseUrl);
  const remove = async (name: string): Promise<void> => {
    const id = name.slice(name.lastIndexOf("/") + 1);
    await api.ask({ method: "DELETE", path: `/files/${encodeURIComponent(id)}` }).catch(ignoreGone);
  };
  return {
    // Requests with inline data have at most 20 MB, in base64.
    inlineBytesMax: 14 * 1024 * 1024,
    // It deletes files after 48 hours by itself.
    lives: { mostMs: 46 * hourMs, leastMs: vendorLeastMs },
    headers: {},
    async upload({ file, content, marker }) {
      const type = mediaTypeOf(file);
      const begun = await api.send({
        method: "POST",
        path: `${origin}/upload${pathname}/files`,
        body: [
          JSON.stringify({
            file: { name: nameOf(marker), displayName: markedName(file.filename, marker) },
          }),
        ],
        headers: {
          "content-type": "application/json",
          "x-goog-upload-protocol": "resumable",
          "x-goog-upload-command": "start",
          "x-goog-upload-header-content-length": String(content.byteLength),
          "x-goog-upload-header-content-type": type,
        },
      });
      await begun.readText(65_536);
      const uploaded = await api.ask({
        method: "POST",
        path: addressIn(begun.headers["x-goog-upload-url"], origin),
        body: [content],
        headers: {
          "content-type": type,
          "x-goog-upload-offset": "0",
          "x-goog-upload-command": "upload, finalize",
        },
      });
      const { uri, state } = Object(uploaded["file"]) as { uri?: unknown; state?: unknown };
      // Sound and pictures that move are prepared first, and cannot be used meanwhile.
      if (state !== undefined && state !== "ACTIVE") {
        await remove(nameOf(marker));
        throw new ProviderCallError(425, "The file cannot be used yet.");
      }
      return uploadedId(uri, /^https?:\/\/.*\/files\//);
    },
    find: (marker) => Promise.resolve(nameOf(marker)),
    remove,
  };
}

/** Returns the address that an upload continues at. The credential is sent to its own host alone. */
function addressIn(header = "", origin: string): string {
  const address = URL.canParse(header) ? new URL(header) : undefined;
  if (address?.origin !== origin)
    throw new ProviderCallError(424, "The address answers as no API for files does.");
  return address.href;
}
