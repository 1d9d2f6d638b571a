import { infiniteQueryOptions } from "@tanstack/react-query";
import { request } from "../../lib/api.ts";

/** A file of the workspace. */
export interface StoredFile {
  id: string;
  filename: string;
  bytes: number;
  purpose: string;
  created_at: number;
  expires_at?: number;
}

interface FileList {
  data: readonly StoredFile[];
  last_id: string | null;
  has_more: boolean;
  /** What the workspace stores, and the most that it may. */
  storage?: { used_bytes: number; quota_bytes: number };
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
