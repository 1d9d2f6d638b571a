import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/**
 * Returns how many processes `auto` means: one for each processor that this process may use, by the
 * machine, the affinity and its cgroup's quota.
 */
export function processorsHere(
  cores = availableParallelism(),
  readQuota = (): string => readFileSync("/sys/fs/cgroup/cpu.max", "utf8"),
): number {
  try {
    const [quota, period] = readQuota().trim().split(" ").map(Number);
    if (quota !== undefined && period !== undefined && Number.isFinite(quota / period))
      return Math.max(1, Math.min(cores, Math.floor(quota / period)));
  } catch {
    // There are no version 2 cgroups on this system.
  }
  return cores;
}
