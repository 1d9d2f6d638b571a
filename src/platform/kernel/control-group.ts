import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";

/** Reads a file of the kernel; undefined where there is none. */
export type ReadKernelFile = (path: string) => string | undefined;

const readKernelFile: ReadKernelFile = (path) => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

/** Version 1 writes a number near 2^63 where there is no limit, and version 2 `max`. */
const unlimitedBytes = 2 ** 50;

const root = "/sys/fs/cgroup";

/**
 * Returns the bytes of memory that the control group of this process may use, as a container or
 * systemd limits them; undefined where there is no limit. Limits of enclosing groups count too.
 */
export function memoryLimitBytes(read: ReadKernelFile = readKernelFile): number | undefined {
  const groups = (read("/proc/self/cgroup") ?? "").split("\n").map((line) => line.split(":"));
  const pathIn = (controller: string): string =>
    groups.find(([, names]) => names?.split(",").includes(controller))?.[2] ?? "/";
  const limits = [
    ...limitsOf(root, { path: pathIn(""), file: "memory.max", read }),
    ...limitsOf(join(root, "memory"), {
      path: pathIn("memory"),
      file: "memory.limit_in_bytes",
      read,
    }),
  ];
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/**
 * Returns the limits of a group and of those around it. In a container the path may be the host's,
 * which does not exist there, and then the mount's root has the limit.
 */
function limitsOf(
  mount: string,
  { path, file, read }: { path: string; file: string; read: ReadKernelFile },
): number[] {
  const limits: number[] = [];
  for (let folder = path; ; folder = dirname(folder)) {
    const bytes = Number(read(join(mount, folder, file))?.trim() || Number.NaN);
    if (bytes > 0 && bytes < unlimitedBytes) limits.push(bytes);
    if (folder === "/" || folder === ".") return limits;
  }
}

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
