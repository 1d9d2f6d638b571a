import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { Answers, Row } from "../../lib/api-types.ts";
import { type List, queryOf, request, sending } from "../../lib/api.ts";

/** A range that the workspace may be reached from. */
export type AllowedRange = Row<"GET /security/ip-allowlist">;

/** What is demanded of every provider. */
export type Privacy = Answers["GET /security/privacy"];

/** A credential with what is worth a look. */
export type Credential = Row<"GET /security/keys">;

/** A change of the account, as the audit log has it. */
export type AuditEntry = Row<"GET /security/audit">;

/** What the audit log is narrowed to. */
export interface AuditFilters {
  action?: string | undefined;
  actor?: string | undefined;
  target?: string | undefined;
  from?: string | undefined;
}

export const rangesQuery = queryOptions({
  queryKey: ["security", "ranges"],
  queryFn: () => request<Answers["GET /security/ip-allowlist"]>("/security/ip-allowlist"),
});
export const privacyQuery = queryOptions({
  queryKey: ["security", "privacy"],
  queryFn: () => request<Privacy>("/security/privacy"),
});
export const credentialsQuery = queryOptions({
  queryKey: ["security", "keys"],
  queryFn: () => request<List<Credential>>("/security/keys"),
});
export const auditQuery = (filters: AuditFilters) =>
  infiniteQueryOptions({
    queryKey: ["security", "audit", filters],
    initialPageParam: "",
    queryFn: ({ pageParam }) =>
      request<List<AuditEntry>>(
        `/security/audit${queryOf({ ...filters, limit: 50, cursor: pageParam })}`,
      ),
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });

export const addRange = (body: { cidr: string; description: string | null; confirm: boolean }) =>
  request<AllowedRange>("/security/ip-allowlist", sending("POST /security/ip-allowlist", body));
export const removeRange = ({ id, confirm }: { id: string; confirm: boolean }) =>
  request(
    `/security/ip-allowlist/${id}`,
    sending("DELETE /security/ip-allowlist/{id}", { confirm }),
  );
export const changePrivacy = (body: Partial<Omit<Privacy, "content_days">>) =>
  request<Privacy>("/security/privacy", sending("PATCH /security/privacy", body));
