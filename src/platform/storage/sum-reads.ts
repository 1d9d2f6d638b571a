import {
  type CompiledQuery,
  type OperationNode,
  RawNode,
  SelectQueryNode,
  TableNode,
} from "kysely";
import type { AddStatement } from "./commit-queue.ts";

/** Ends the text of queries that read sums; a comment, so that the text alone says it. */
const mark = " /* reads sums */";

/** Returns whether a compiled query reads sums, which have to contain every commit by then. */
export const readsSums = (sql: string): boolean => sql.endsWith(mark);

/** The names of the tables that contain the sums of some statements. */
export type SumTables = ReadonlySet<string>;

/** Returns the tables of sums that statements grow, directly or by a trigger. */
export const sumTablesOf = (adds: readonly AddStatement[]): SumTables =>
  new Set(adds.flatMap(({ table, spreadsTo = [table] }) => spreadsTo));

/** Returns whether a part of a query names one of the tables. */
function namesTable(part: unknown, tables: SumTables): boolean {
  if (typeof part !== "object" || part === null) return false;
  if (Array.isArray(part)) return part.some((each) => namesTable(each, tables));
  if (!("kind" in part)) return false;
  if (part.kind === "PrimitiveValueListNode") return false;
  const node = part as OperationNode;
  if (TableNode.is(node)) return tables.has(node.table.identifier.name);
  return Object.values(node).some((each) => namesTable(each, tables));
}

/**
 * Marks a query that reads sums, by the tables in its tree. Raw SQL names a table of sums as
 * `sql.table("usage_days")`, since its text is not read.
 */
export function marked(compiled: CompiledQuery, tables: SumTables): CompiledQuery {
  const { query } = compiled;
  const reads =
    (SelectQueryNode.is(query) || RawNode.is(query)) &&
    tables.size > 0 &&
    namesTable(query, tables);
  return reads ? { ...compiled, sql: compiled.sql + mark } : compiled;
}
