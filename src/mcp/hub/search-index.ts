import { sql, type QueryExecutorProvider, type RawBuilder, type SqlBool } from "kysely";
import type { StorageKind } from "../../platform/storage/storage.ts";

/**
 * The copy of a text that is searched: the newest one in its workspace, the published one
 * elsewhere, or a person's conversation.
 */
export type Audience = "workspace" | "public" | "conversation";

/** A text: the record that it belongs to, and which copy. */
export interface TextReference {
  ownerId: string;
  audience: Audience;
}

/** Matches scripts that are written without spaces, in which each character counts as a word. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu;
const wordCharactersMax = 64;
const wordsMax = 20_000;
const searchedWordsMax = 16;

/**
 * Returns the distinct words of a text, without accents and in lower case. They are split here and
 * not by the engines, whose parsers differ, so that SQLite and Postgres find the same.
 */
function wordsOf(text: string, most = wordsMax): string[] {
  const plain = text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(unspaced, " $& ");
  const words = new Set<string>();
  for (const [word] of plain.matchAll(/[\p{L}\p{N}]+/gu)) {
    words.add(Array.from(word).slice(0, wordCharactersMax).join(""));
    if (words.size === most) break;
  }
  return [...words];
}

/**
 * Finds records by the words of their texts: every word of the query has to begin one of the text.
 */
export class SearchIndex {
  constructor(private readonly kind: StorageKind) {}

  /** Replaces the indexed text of a record. */
  async put(
    database: QueryExecutorProvider,
    reference: TextReference,
    text: string,
  ): Promise<void> {
    const { ownerId, audience } = reference;
    const words = wordsOf(text);
    if (this.kind === "postgres") {
      await sql`insert into search_texts (owner_id, audience, words) values (${ownerId}, ${audience}, array_to_tsvector(${words}::text[]))
        on conflict (owner_id, audience) do update set words = excluded.words`.execute(database);
      return;
    }
    await this.remove(database, reference);
    const { rows } = await sql<{ row_id: number }>`
      insert into search_texts (owner_id, audience) values (${ownerId}, ${audience}) returning row_id`.execute(
      database,
    );
    await sql`insert into search_words (rowid, words) values (${rows[0]?.row_id}, ${words.join(" ")})`.execute(
      database,
    );
  }

  /** Removes a text; every copy of it where no audience is named. */
  async remove(
    database: QueryExecutorProvider,
    { ownerId, audience }: { ownerId: string; audience?: Audience },
  ): Promise<void> {
    const wanted = sql`owner_id = ${ownerId}${audience === undefined ? sql`` : sql` and audience = ${audience}`}`;
    if (this.kind === "sqlite") {
      await sql`delete from search_words where rowid in (select row_id from search_texts where ${wanted})`.execute(
        database,
      );
    }
    await sql`delete from search_texts where ${wanted}`.execute(database);
  }

  /**
   * Returns the condition that the text of the record in a column has every word of a query. A
   * query without words matches none.
   */
  matches(
    column: string,
    { audience, search }: { audience: Audience; search: string },
  ): RawBuilder<SqlBool> {
    const words = wordsOf(search, searchedWordsMax);
    if (words.length === 0) return sql<SqlBool>`1 = 0`;
    if (this.kind === "postgres") {
      const query = words.map((word) => `'${word}':*`).join(" & ");
      return sql<SqlBool>`${sql.ref(column)} in (
        select owner_id from search_texts where audience = ${audience} and words @@ ${query}::tsquery)`;
    }
    const query = words.map((word) => `"${word}"*`).join(" ");
    return sql<SqlBool>`${sql.ref(column)} in (
      select owner_id from search_texts where audience = ${audience}
      and row_id in (select rowid from search_words where search_words match ${query}))`;
  }
}
