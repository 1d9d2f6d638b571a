import type { SqlValue } from "../../platform/storage/commit-queue.ts";
import { auditInsert, auditOutcomeInsert } from "./audit-log.ts";
import { createLinkHasher, type ChainHead } from "./audit-chain.ts";

/** Reads rows from a database of either engine. */
export type Query = (text: string) => Promise<readonly Record<string, unknown>[]>;

const columnsOf = (alias: string, columns: readonly string[]): string =>
  columns.map((column) => `${alias}.${column} as ${alias}_${column}`).join(", ");

const linksSql = `select c.chain, c.seq, c.part, c.anchors, c.hash, c.audit_id,
    ${columnsOf("e", auditInsert.columns)}, ${columnsOf("o", auditOutcomeInsert.columns)}
  from audit_chain c
  left join audit_log e on c.part = 'entry' and e.workspace_id = c.workspace_id and e.id = c.audit_id
  left join audit_outcomes o on c.part = 'outcome' and o.workspace_id = c.workspace_id and o.audit_id = c.audit_id
  order by c.chain, c.seq`;

/** Entries that were written beside the chain since there is one. */
const outsideSql = `select e.id, e.at_ms, (select timestamp from kysely_migration where name = '2026-12-13-audit-chain') as since
  from audit_log e left join audit_chain c on c.part = 'entry' and c.audit_id = e.id and c.workspace_id = e.workspace_id
  where c.audit_id is null`;

const integerColumns = new Set(["at_ms", "status"]);

function valuesOf(
  row: Record<string, unknown>,
  alias: string,
  columns: readonly string[],
): SqlValue[] {
  return columns.map((column) => {
    const value = row[`${alias}_${column}`];
    if (value === null || value === undefined) return null;
    return integerColumns.has(column) ? Number(value) : String(value);
  });
}

/** What is wrong with the audit log: rows that are missing, were changed, or were added beside it. Empty where nothing is. */
export async function checkAuditLog(query: Query, encryptionKey: Uint8Array): Promise<string[]> {
  const problems: string[] = [];
  const hashOf = createLinkHasher(encryptionKey);
  const found = new Map<string, string>();
  const anchors: ChainHead[] = [];
  let [chain, nextSeq, previous] = ["", 0, ""];
  for (const row of await query(linksSql)) {
    if (row["chain"] !== chain) [chain, nextSeq, previous] = [String(row["chain"]), 0, ""];
    const [seq, part, hash] = [Number(row["seq"]), String(row["part"]), String(row["hash"])];
    if (seq !== nextSeq)
      problems.push(`audit log: rows ${nextSeq} to ${seq - 1} of chain ${chain} are missing`);
    else {
      const values =
        part === "start"
          ? [String(row["anchors"])]
          : part === "entry"
            ? valuesOf(row, "e", auditInsert.columns)
            : valuesOf(row, "o", auditOutcomeInsert.columns);
      const gone = part !== "start" && values[0] === null;
      if (gone) problems.push(`audit log: the ${part} ${String(row["audit_id"])} was deleted`);
      else if (hashOf({ chain, seq, previous, part, values }) !== hash) {
        problems.push(
          `audit log: row ${seq} of chain ${chain} (${part} ${String(row["audit_id"])}) was changed`,
        );
      }
    }
    if (part === "start") anchors.push(...(JSON.parse(String(row["anchors"])) as ChainHead[]));
    found.set(`${chain} ${seq}`, hash);
    [nextSeq, previous] = [seq + 1, hash];
  }
  for (const [of, seq, hash] of anchors) {
    if (found.get(`${of} ${seq}`) !== hash)
      problems.push(`audit log: the end of chain ${of}, up to row ${seq}, is missing`);
  }
  for (const { id, at_ms: atMs, since } of await query(outsideSql)) {
    if (Number(atMs) >= Date.parse(String(since)))
      problems.push(`audit log: the entry ${String(id)} was added beside the log`);
  }
  return problems;
}
