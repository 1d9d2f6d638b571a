import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrations } from "../../src/platform/storage/migrations/index.ts";
import { openStorage } from "../../src/platform/storage/open-storage.ts";

let template: Promise<string> | undefined;

async function createTemplate(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-migrated-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "migrated.db");
  const storage = await openStorage({
    url: `sqlite:${path}`,
    durability: "process",
    migrations,
    commitStatements: { inserts: [], adds: [] },
  });
  await storage.close();
  return path;
}

/**
 * Puts a database into a directory that has every migration, and no rows; returns the URL of its
 * storage.
 */
export async function putMigratedSqlite(directory: string, name = "test.db"): Promise<string> {
  const path = join(directory, name);
  copyFileSync(await (template ??= createTemplate()), path);
  return `sqlite:${path}`;
}
