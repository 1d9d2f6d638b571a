import { cpus } from "node:os";

/**
 * Which cores run what; empty where programs cannot be pinned, and the figures are then rougher.
 */
export interface Cores {
  peer?: string;
  mock?: string;
  load?: string;
}

/**
 * The peer alone on the first core, mock and load generator on others; they share one on a machine
 * with two.
 */
export function assignCores(): Cores {
  const count = cpus().length;
  if (count < 2 || Bun.which("taskset") === null) return {};
  return { peer: "0", mock: "1", load: count > 2 ? "2" : "1" };
}
