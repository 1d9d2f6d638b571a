import { dayMs } from "../../../platform/kernel/clock.ts";
import type { ProviderApi } from "../batches/provider-api.ts";
import {
  formOf,
  idByName,
  ignoreGone,
  markedName,
  mediaTypeOf,
  type ProviderFileApi,
  uploadedId,
  vendorLeastMs,
} from "./provider-file-api.ts";

/** OpenAI's files. Source: https://platform.openai.com/docs/api-reference/files */
export function openaiFiles(api: ProviderApi): ProviderFileApi {
  return {
    inlineBytesMax: 32 * 1024 * 1024,
    lives: { mostMs: 30 * dayMs, leastMs: vendorLeastMs },
    headers: {},
    async upload({ file, content, marker, livesMs }) {
      const type = mediaTypeOf(file);
      const form = formOf(
        {
          purpose: type.startsWith("image/") ? "vision" : "user_data",
          "expires_after[anchor]": "created_at",
          "expires_after[seconds]": String(Math.floor(livesMs / 1_000)),
        },
        { name: markedName(file.filename, marker), type, content },
      );
      const { id } = await api.ask({ method: "POST", path: "/files", ...form });
      return uploadedId(id, /^file[-_]/);
    },
    async find(marker) {
      const { data } = await api.ask({ method: "GET", path: "/files?order=desc&limit=10000" });
      return idByName(data, marker);
    },
    async remove(id) {
      await api
        .ask({ method: "DELETE", path: `/files/${encodeURIComponent(id)}` })
        .catch(ignoreGone);
    },
  };
}
