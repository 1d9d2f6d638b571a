import type { Database } from "bun:sqlite";
import type { CommitStatements } from "../packed-unit.ts";
import { newMark, type CommitJournal } from "./commit-journal.ts";
import { DeferredCommit } from "./deferred-commit.ts";
import { engineErrorOf } from "./engine-error.ts";

/** Begins a journal: from now on the database says which records count, and by which statements they are to be read. */
export function beginJournal({
  database,
  journal,
  statements,
}: {
  database: Database;
  journal: CommitJournal;
  statements: CommitStatements;
}): void {
  const mark = newMark();
  database.run(
    "CREATE TABLE IF NOT EXISTS commit_journal (id integer primary key, mark text not null, statements text not null) STRICT",
  );
  database.run("INSERT OR REPLACE INTO commit_journal VALUES (1, ?, ?)", [
    mark,
    JSON.stringify(statements),
  ]);
  journal.restart(mark);
}

/** Commits what a gateway left in its journal that ended before it could, by that gateway's own statements and tables. */
export function commitWhatIsLeft(database: Database, journal: CommitJournal): void {
  const [table] = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE name = 'commit_journal'")
    .values();
  if (table === undefined) return;
  const [row] = database.prepare("SELECT mark, statements FROM commit_journal").values() as [
    string,
    string,
  ][];
  if (row === undefined) return;
  const batches = journal.read(row[0]);
  if (batches.length === 0) return;
  try {
    const left = new DeferredCommit({
      database,
      journal,
      statements: JSON.parse(row[1]) as CommitStatements,
    });
    left.recall(batches);
    left.workOff();
  } catch (error) {
    const { message, code } = engineErrorOf(error);
    throw Object.assign(
      new Error(
        `commits that the last run wrote down were refused by ${database.filename}: ${message}`,
      ),
      { code },
    );
  }
}
