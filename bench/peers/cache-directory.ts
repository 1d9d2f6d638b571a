import { homedir } from "node:os";
import { join } from "node:path";

/** Where peers are installed that are too large for this tree; `BENCH_CACHE` names another place. */
export const cacheDirectory = (): string =>
  process.env["BENCH_CACHE"] ??
  join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "switchyard-bench");
