// Which test files a run has, which of them run alone, and how many processes share the others.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join, relative, sep } from "node:path";

const folders = ["src", "test", "bench", "scripts", "examples"];
const testFile = /\.(?:test|spec)\.[cm]?[jt]sx?$|_(?:test|spec)\.[cm]?[jt]sx?$/;
/** Memory of one process with the gateways, browsers and databases that its tests start. */
const workerBytes = 2.5e9;

/** Returns every test file below a folder, as paths from the root with slashes, sorted. */
function filesBelow(root, folder) {
  const files = [];
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory() && entry.name !== "node_modules" && !entry.name.startsWith("."))
      files.push(...filesBelow(root, path));
    else if (entry.isFile() && testFile.test(entry.name)) files.push(path);
  }
  return files.sort();
}

const allFiles = (root) =>
  folders.filter((folder) => existsSync(join(root, folder))).flatMap((f) => filesBelow(root, f));

/**
 * Returns the files that a path selects: itself, those below it, or, as `bun test` does it, those
 * whose path contains it.
 */
function selectedBy(root, parameter) {
  const path = relative(root, join(root, parameter)).split(sep).join("/");
  if (!existsSync(join(root, path)))
    return allFiles(root).filter((file) => file.includes(parameter));
  return statSync(join(root, path)).isDirectory() ? filesBelow(root, path) : [path];
}

/** Returns the test files that the paths select, or all where there are none; each once. */
export const selectFiles = (root, paths) =>
  paths.length === 0
    ? allFiles(root)
    : [...new Set(paths.flatMap((path) => selectedBy(root, path)))].sort();

function readJson(path, absent) {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : absent;
}

/** Returns the files that run alone, and those that may take long, each with its reason. */
export const readSuite = (root) =>
  readJson(join(root, "test", "suite.json"), { alone: {}, slow: {} });

/**
 * Returns the number of processes that run tests beside each other: two for each core, since tests
 * wait for time limits, databases and browsers (six processes on two cores waited for the processor
 * for 95 % of a run, and took an eighth more of it), and fewer where memory is short.
 */
export const workerCount = (cores = availableParallelism(), bytes = totalmem()) =>
  Math.max(1, Math.min(cores * 2, Math.floor(bytes / workerBytes)));
