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

/** Without it, its API knows no source of the type file. */
const feature = { "anthropic-beta": "files-api-2025-04-14" };

/** Anthropic's files. Source: https://docs.anthropic.com/en/docs/build-with-claude/files */
export function anthropicFiles(plain: ProviderApi): ProviderFileApi {
  const api = plain.with({ "anthropic-version": "2023-06-01", ...feature });
  return {
    inlineBytesMax: 23 * 1024 * 1024,
    lives: { mostMs: 90 * dayMs, leastMs: vendorLeastMs },
    headers: feature,
    async upload({ file, content, marker, livesMs }) {
      const form = formOf(
        { expires_in_seconds: String(Math.floor(livesMs / 1_000)) },
        { name: markedName(file.filename, marker), type: mediaTypeOf(file), content },
      );
      const { id } = await api.ask({ method: "POST", path: "/files", ...form });
      return uploadedId(id, /^file_/);
    },
    async find(marker) {
      const { data } = await api.ask({ method: "GET", path: "/files?limit=1000" });
      return idByName(data, marker);
    },
    async remove(id) {
      await api
        .ask({ method: "DELETE", path: `/files/${encodeURIComponent(id)}` })
        .catch(ignoreGone);
    },
  };
}
