// A folder in memory for the files of tests, where this machine has room for it.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";

const parent = "/dev/shm";
/** What the databases, browsers and programs of a run keep at most at one time, with a margin. */
const folderBytes = 6e9;
/** Memory that is available at the start: that of the folder, and of the tests themselves. */
const memoryBytes = 16e9;

function hasRoom() {
  if (!existsSync(parent)) return false;
  const { bavail, bsize } = statfsSync(parent);
  const available = Math.min(freemem(), process.availableMemory?.() || Number.POSITIVE_INFINITY);
  return bavail * bsize >= folderBytes && available >= memoryBytes;
}

/** Whether programs may be run from a folder, as some tests do; containers often forbid it there. */
function runsPrograms(folder) {
  const path = join(folder, "program");
  writeFileSync(path, "#!/bin/sh\nexit 7\n", { mode: 0o700 });
  return spawnSync(path).status === 7;
}

/**
 * Makes a folder in memory that is removed when this process ends, and returns its path; undefined
 * where there is no room for it. Files of tests are thrown away, so that no test needs to wait for
 * a disk. The name is short, since paths of sockets are bounded.
 */
export function makeMemoryFolder() {
  if (!hasRoom()) return undefined;
  const folder = mkdtempSync(join(parent, "sy-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  // Postgres runs as a user without rights, which passes through it.
  chmodSync(folder, 0o711);
  return runsPrograms(folder) ? folder : undefined;
}
