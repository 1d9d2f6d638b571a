import { processorsHere } from "../kernel/control-group.ts";
import type { ConfigurationWarning } from "./configuration-warnings.ts";

/** The memory for eight of the largest bodies at once. */
const mostMib = 256;
/** The memory for one of the largest bodies, the least that can be set. */
const leastMib = 32;

/** The memory of a process without bodies, and of a body as text and as parsed, as measured. */
const ownMib = 160;
const mibPerBodyMib = 4;

const mib = 1024 ** 2;

/** The memory that this machine or its container leaves to each process. */
interface MemoryPlace {
  /** Undefined where there is no limit. */
  limitBytes: number | undefined;
  processes: number | "auto";
}

const countOf = (processes: MemoryPlace["processes"]): number =>
  processes === "auto" ? processorsHere() : processes;

/** Returns the mebibytes of bodies for which a process has the memory, at most the usual default. */
export function defaultBodyMemoryMib({ limitBytes, processes }: MemoryPlace): number {
  if (limitBytes === undefined) return mostMib;
  const fitting = Math.floor((limitBytes / mib / countOf(processes) - ownMib) / mibPerBodyMib);
  return Math.min(mostMib, Math.max(leastMib, fitting));
}

/** Returns what is said where bodies may take more memory than there is, which ends the process. */
export function bodyMemoryWarnings(
  bodyMemoryBytes: number,
  { limitBytes, processes }: MemoryPlace,
): ConfigurationWarning[] {
  const bodiesMib = bodyMemoryBytes / mib;
  const neededMib = countOf(processes) * (ownMib + mibPerBodyMib * bodiesMib);
  if (limitBytes === undefined || limitBytes >= neededMib * mib) return [];
  const fitting = defaultBodyMemoryMib({ limitBytes, processes });
  const smaller = fitting < bodiesMib ? `, or set it to ${fitting}` : "";
  const allowed = Math.floor(limitBytes / mib);
  const message =
    `bodies of ${bodiesMib} MiB need about ${neededMib} MiB in all, and the control group allows ${allowed} MiB: ` +
    `the kernel may end the gateway under load; give it more memory${smaller}`;
  return [{ key: "server.body_memory_mb", message }];
}
