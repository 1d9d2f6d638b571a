import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { type List, queryOf, request, sending } from "../../lib/api.ts";

/** A range that the workspace may be reached from. */
export interface AllowedRange {
  id: string;
  cidr: string;
  description: string | null;
  created_at: string;
}

/** What is demanded of every provider. */
export interface Privacy {
  zdr: boolean;
  blocked_providers: readonly string[];
  /** Whether prompts and answers are kept. */
  keep_contents: boolean;
  /** For how many days. */
  content_days: number;
}

/** A credential with what is worth a look. */
export interface Credential {
  id: string;
  kind: "llm" | "management";
  name: string;
  label: string;
  last_used_at: string | null;
  findings: readonly ("no_expiry" | "unused" | "no_spending_limit")[];
}

/** A change of the account, as the audit log has it. */
export interface AuditEntry {
  id: string;
  at: string;
  actor: { kind: string; id: string; label: string };
  address: string;
  action: string;
  words: string;
  target: string | null;
  fields: readonly string[];
  outcome: "done" | "refused" | "unknown";
}

/** What the audit log is narrowed to. */
export interface AuditFilters {
  action?: string | undefined;
  actor?: string | undefined;
  target?: string | undefined;
  from?: string | undefined;
}

export const rangesQuery = queryOptions({
  queryKey: ["security", "ranges"],
  queryFn: () => request<List<AllowedRange> & { your_address: string }>("/security/ip-allowlist"),
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
