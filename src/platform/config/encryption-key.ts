import { randomBytes } from "node:crypto";
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigurationError } from "./configuration-error.ts";

/** The places where the encryption key is looked for, and whether one may be created. */
export interface EncryptionKeyOptions {
  /** 32 bytes in base64, as the operator gave them. */
  configured: string | undefined;
  dataDirectory: string;
  /** Whether the database is a file of this process. */
  embedded: boolean;
  /** Whether that file exists already, so that its key has to exist, too. */
  databaseExists?: boolean;
}

const keyBytes = 32;
const variable = "SWITCHYARD_ENCRYPTION_KEY";

/**
 * Returns the 32 bytes that protect secrets at rest. An embedded gateway creates its own on the
 * first start, in `encryption.key` (mode 0600) of the data directory. Beside a shared database
 * there is no such place.
 */
export function loadEncryptionKey({
  configured,
  dataDirectory,
  embedded,
  databaseExists,
}: EncryptionKeyOptions): Uint8Array {
  if (configured !== undefined) return decoded(configured, variable);
  if (!embedded) {
    throw problem(
      variable,
      "is required with Postgres: set 32 bytes in base64, such as `openssl rand -base64 32` prints",
    );
  }
  const path = join(dataDirectory, "encryption.key");
  const kept = readKeyFile(path);
  if (kept === undefined && databaseExists) {
    throw problem(
      variable,
      `is not set and ${path} is missing, but the database exists: no stored credential works without its key; restore it`,
    );
  }
  return decoded(kept ?? makeKeyFile(dataDirectory, path), path);
}

function decoded(base64: string, key: string): Uint8Array {
  const bytes = Buffer.from(base64.trim(), "base64");
  if (bytes.length !== keyBytes) throw problem(key, "expected 32 bytes in base64");
  return new Uint8Array(bytes);
}

function readKeyFile(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw problem(
      path,
      `cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

/** Writes a new private file, and its directory where that is missing. */
function writePrivate(directory: string, path: string, text: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(path, text, { mode: 0o600, flush: true });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw problem("SWITCHYARD_DATA_DIR", `${directory} cannot be written to: ${reason}`);
  }
}

/**
 * Creates the key file: it is written under another name and then linked, so that of two concurrent
 * first starts one key wins, and the file is never incomplete.
 */
function makeKeyFile(dataDirectory: string, path: string): string {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  writePrivate(dataDirectory, draft, `${randomBytes(keyBytes).toString("base64")}\n`);
  chmodSync(draft, 0o600);
  try {
    linkSync(draft, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return readFileSync(path, "utf8");
}

const problem = (key: string, message: string): ConfigurationError =>
  new ConfigurationError([{ key, message }]);
