import { Database } from "bun:sqlite";
import { z } from "zod";

const idRows = z.array(z.object({ id: z.string() }));

/** The column `id` of a query on a file of SQLite whose program has ended, or was killed. */
export function idsOf(path: string, text: string): string[] {
  // What a killed program left in the log is read by a connection that may write alone.
  using database = new Database(path, { readwrite: true, create: false });
  return idRows.parse(database.query(text).all()).map(({ id }) => id);
}

/** Takes the write lock of a file of SQLite beside its program; the result gives it back. */
export function lockSqlite(path: string): () => void {
  const database = new Database(path, { readwrite: true, create: false });
  database.run("pragma busy_timeout = 5000");
  database.run("begin immediate");
  return () => {
    database.run("rollback");
    database.close();
  };
}
