import { statfsSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";

/** What the figures were taken on. */
export interface Machine {
  cpu: string;
  cores: number;
  memoryGb: number;
  system: string;
  bun: string;
  commit: string;
  /**
   * True when the data directory lies in memory, where a commit costs nothing and `power` means
   * nothing.
   */
  dataInMemory: boolean;
}

/** `f_type` of tmpfs (statfs(2)). */
const tmpfsType = 0x0102_1994;

/** True when a directory lies in memory. */
export const isInMemory = (directory: string): boolean => statfsSync(directory).type === tmpfsType;

/** Reads what is known of this machine and this checkout. */
export function describeMachine(dataDirectory: string): Machine {
  const commit = Bun.spawnSync(["git", "rev-parse", "--short", "HEAD"], {
    stdout: "pipe",
    stderr: "ignore",
  });
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    system: `${process.platform} ${release()}`,
    bun: Bun.version,
    commit: commit.success ? commit.stdout.toString().trim() : "unknown",
    dataInMemory: isInMemory(dataDirectory),
  };
}
