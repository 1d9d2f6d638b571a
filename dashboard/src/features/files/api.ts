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

export const deleteFile = (id: string) =>
  request<{ deleted: boolean }>(`/files/${encodeURIComponent(id)}`, { method: "DELETE" });
