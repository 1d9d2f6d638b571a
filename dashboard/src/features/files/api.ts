import { infiniteQueryOptions } from "@tanstack/react-query";
import type { Answers, Row } from "../../lib/api-types.ts";
import { request } from "../../lib/api.ts";

/** A file of the workspace. */
export type StoredFile = Extract<Row<"GET /files">, { purpose: string }>;

interface FileList extends Omit<Answers["GET /files"], "data"> {
  data: readonly StoredFile[];
}

export const filePagesQuery = infiniteQueryOptions({
  queryKey: ["files", "*"],
  initialPageParam: "",
  queryFn: ({ pageParam }) =>
    request<FileList>(`/files?limit=50${pageParam === "" ? "" : `&after=${pageParam}`}`),
  getNextPageParam: ({ has_more: hasMore, last_id: last }) =>
    hasMore ? (last ?? undefined) : undefined,
});

/** What a file is uploaded for, as people choose it. */
export const purposes = [
  ["batch", "a batch: one request a line"],
  ["user_data", "chats that read it"],
  ["vision", "chats that look at it"],
] as const;
export type Purpose = (typeof purposes)[number][0];

/** Stores a file in the workspace. */
export function uploadFile({ file, purpose }: { file: File; purpose: Purpose }) {
  const body = new FormData();
  body.append("purpose", purpose);
  body.append("file", file);
  return request<StoredFile>("/files", { method: "POST", body });
}

export const deleteFile = (id: string) =>
  request<{ deleted: boolean }>(`/files/${encodeURIComponent(id)}`, { method: "DELETE" });
