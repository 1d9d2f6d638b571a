import { hkdfSync, randomBytes } from "node:crypto";
import type { Kysely } from "kysely";
import type {
  CommitQueue,
  CommitUnit,
  InsertStatement,
  SqlValue,
} from "../../platform/storage/commit-queue.ts";
import { auditInsert, auditOutcomeInsert } from "./audit-log.ts";

/**
 * Rows of the hash chains: the row of the log that each link covers, and the hash over it and the
 * previous link.
 */
export interface AuditChainTables {
  audit_chain: {
    chain: string;
    seq: number;
    part: string;
    workspace_id: string;
    audit_id: string;
    /**
     * In the first row of a chain: the last rows of earlier chains, so that a missing chain is
     * detected.
     */
    anchors: string | null;
    hash: string;
  };
}

/** The insert of links, which are committed with the rows that they cover. */
export const auditChainInsert: InsertStatement = {
  name: "audit-chain",
  table: "audit_chain",
  columns: ["chain", "seq", "part", "workspace_id", "audit_id", "anchors", "hash"],
};

/** The last row of a chain. */
type ChainHead = readonly [chain: string, seq: number, hash: string];

/** A link without its own hash, but with that of the previous link. */
interface ChainLink {
  chain: string;
  seq: number;
  previous: string;
  part: string;
  values: readonly SqlValue[];
}

/** Returns a function that hashes links under a key that the database does not hold. */
function createLinkHasher(encryptionKey: Uint8Array): (link: ChainLink) => string {
  const key = new Uint8Array(
    hkdfSync("sha256", encryptionKey, "", "switchyard audit chain v1", 32),
  );
  return ({ chain, seq, previous, part, values }) =>
    new Bun.CryptoHasher("sha256", key)
      .update(JSON.stringify([chain, seq, previous, part, values]))
      .digest("hex");
}

/**
 * Returns a text as both engines return it: Postgres stores no U+0000, and neither stores a lone
 * surrogate.
 */
const storable = (value: SqlValue): SqlValue =>
  typeof value === "string" ? value.toWellFormed().replaceAll("\0", "\ufffd") : value;

type Row = CommitUnit["inserts"][number];

interface Waiting {
  unit: CommitUnit;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Commits rows of the audit log together with their links. One unit at a time is written, with all
 * rows that arrived meanwhile, so that a refused unit leaves no gap. Each gateway writes a chain of
 * its own, which starts with its first row.
 */
export class AuditChain implements Pick<CommitQueue, "commit" | "stalled"> {
  private readonly commits: Pick<CommitQueue, "commit" | "stalled">;
  private readonly database: Kysely<AuditChainTables>;
  private readonly hashOf: (link: ChainLink) => string;
  private readonly chain = randomBytes(12).toString("hex");
  private head: { seq: number; hash: string } | undefined;
  private waiting: Waiting[] = [];
  private writing = false;

  constructor(options: {
    commits: Pick<CommitQueue, "commit" | "stalled">;
    database: Kysely<AuditChainTables>;
    encryptionKey: Uint8Array;
  }) {
    this.commits = options.commits;
    this.database = options.database;
    this.hashOf = createLinkHasher(options.encryptionKey);
  }

  get stalled(): boolean {
    return this.commits.stalled;
  }

  commit(unit: CommitUnit): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ unit, resolve, reject });
      if (!this.writing) void this.write();
    });
  }

  private async write(): Promise<void> {
    this.writing = true;
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0);
      try {
        await this.append(batch.flatMap(({ unit }) => unit.inserts));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.writing = false;
  }

  private async append(rows: readonly Row[]): Promise<void> {
    const inserts: Row[] = [];
    let { head } = this;
    const link = (
      part: string,
      of: {
        values: readonly SqlValue[];
        workspaceId: SqlValue;
        auditId: SqlValue;
        anchors: string | null;
      },
    ): void => {
      const seq = head === undefined ? 0 : head.seq + 1;
      const hash = this.hashOf({
        chain: this.chain,
        seq,
        previous: head?.hash ?? "",
        part,
        values: of.values,
      });
      head = { seq, hash };
      inserts.push({
        statement: auditChainInsert,
        values: [this.chain, seq, part, of.workspaceId, of.auditId, of.anchors, hash],
      });
    };
    if (head === undefined) {
      const anchors = JSON.stringify(await openHeads(this.database));
      link("start", { values: [anchors], workspaceId: "", auditId: "", anchors });
    }
    for (const { statement, values: given } of rows) {
      const values = given.map(storable);
      inserts.push({ statement, values });
      const at = (column: string): SqlValue => values[statement.columns.indexOf(column)] ?? "";
      const isEntry = statement.columns.includes("id");
      link(isEntry ? "entry" : "outcome", {
        values,
        workspaceId: at("workspace_id"),
        auditId: at(isEntry ? "id" : "audit_id"),
        anchors: null,
      });
    }
    await this.commits.commit({ inserts, adds: [] });
    this.head = head;
  }
}

/** Returns the last rows of the chains that no later chain has anchored. */
async function openHeads(database: Kysely<AuditChainTables>): Promise<ChainHead[]> {
  const heads = await database
    .selectFrom("audit_chain as link")
    .select(["link.chain", "link.seq", "link.hash"])
    .where("link.seq", "=", ({ selectFrom }) =>
      selectFrom("audit_chain as other")
        .select(({ fn }) => fn.max("other.seq").as("seq"))
        .whereRef("other.chain", "=", "link.chain"),
    )
    .execute();
  const starts = await database
    .selectFrom("audit_chain")
    .select("anchors")
    .where("seq", "=", 0)
    .execute();
  const anchored = new Set(
    starts.flatMap(({ anchors }) =>
      (JSON.parse(anchors ?? "[]") as ChainHead[]).map(([, , hash]) => hash),
    ),
  );
  return heads
    .filter(({ hash }) => !anchored.has(hash))
    .map(({ chain, seq, hash }) => [chain, Number(seq), hash] as const);
}

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

/** Selects entries that have no link in any chain. */
const outsideSql = `select e.id from audit_log e
  left join audit_chain c on c.part = 'entry' and c.audit_id = e.id and c.workspace_id = e.workspace_id
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

/** The finding where no row of the audit log has a hash of this key. */
export const otherKeyFinding =
  "the encryption key is not the one that this database was written with";

/**
 * Returns what is wrong with the audit log: rows that are missing, were changed, or were added
 * without a link. Empty where nothing is.
 */
export async function checkAuditLog(query: Query, encryptionKey: Uint8Array): Promise<string[]> {
  const problems: string[] = [];
  const hashOf = createLinkHasher(encryptionKey);
  const found = new Map<string, string>();
  const anchors: ChainHead[] = [];
  let [chain, nextSeq, previous] = ["", 0, ""];
  let [links, changed] = [0, 0];
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
        changed += 1;
        problems.push(
          `audit log: row ${seq} of chain ${chain} (${part} ${String(row["audit_id"])}) was changed`,
        );
      }
    }
    if (part === "start") anchors.push(...(JSON.parse(String(row["anchors"])) as ChainHead[]));
    links += 1;
    found.set(`${chain} ${seq}`, hash);
    [nextSeq, previous] = [seq + 1, hash];
  }
  if (links > 0 && changed === links) return [otherKeyFinding];
  for (const [of, seq, hash] of anchors) {
    if (found.get(`${of} ${seq}`) !== hash)
      problems.push(`audit log: the end of chain ${of}, up to row ${seq}, is missing`);
  }
  for (const { id } of await query(outsideSql))
    problems.push(`audit log: the entry ${String(id)} was added beside the log`);
  return problems;
}
