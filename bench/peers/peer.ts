import type { Child, Children } from "../process/children.ts";
import type { Cores } from "../process/cores.ts";
import { waitForPort } from "../process/ports.ts";

/** What a peer may use to start. */
export interface PeerContext {
  children: Children;
  cores: Cores;
  /** The mock upstream. */
  mock: { port: number; child: Pick<Child, "pid"> };
  /** A directory of the peer's own that outlives its restarts and is deleted at the end. */
  directory: string;
}

/** A peer that serves. */
export interface RunningPeer {
  port: number;
  /** Root of the process tree whose CPU time and memory are the peer's. */
  pid: number;
  /** From starting the process until it could serve; absent for what was not started. */
  readyMs?: number;
  stop(): Promise<void>;
}

/** What a peer does for each request besides passing it on, as it is configured here, in words. */
export interface PeerWork {
  credential: string;
  limits: string;
  price: string;
  /** What is kept of a request, and when it is written. */
  record: string;
}

/** A peer's own account of the answers that it gave. */
interface PeerBooks {
  /**
   * Ids of the answers that are charged for or recorded, one for each row. `directory` is the
   * peer's own, as in its context; the peer does not run any more.
   */
  readIds(directory: string): Promise<string[]>;
  /** Keeps the peer from writing until what this resolves with is called. */
  lock(directory: string): Promise<() => void>;
}

/** Something that stands between load generator and mock. */
export interface Peer {
  /** Name in tables and files. */
  name: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  /** What stands before `large`, `paced` or `quiet` in the request's `model`. */
  modelPrefix: string;
  /** Answers must carry `usage.cost`: proof that holding, charging and recording are really on. */
  chargesRequests: boolean;
  work: PeerWork;
  /** Absent where it keeps none. */
  books?: PeerBooks;
  /** Makes it startable, or says why that is impossible here. */
  prepare(): Promise<{ ready: true; version: string } | { ready: false; reason: string }>;
  start(context: PeerContext): Promise<RunningPeer>;
}

/** The work of a peer that only passes on what it is sent. */
export const noWork: PeerWork = { credential: "off", limits: "off", price: "off", record: "off" };

/** Milliseconds that a peer may take to start. */
export const startTimeoutMs = 20_000;

/** A peer that serves once its port is open. Rejects with what it wrote where that does not come. */
export async function onceOpen(
  child: Child,
  { port, timeoutMs = startTimeoutMs }: { port: number; timeoutMs?: number },
): Promise<RunningPeer> {
  await waitForPort(port, { isAlive: child.isRunning, timeoutMs }).catch((error: Error) =>
    Promise.reject(new Error(`${error.message} ${child.errorText()}`)),
  );
  return {
    port,
    pid: child.pid,
    readyMs: performance.now() - child.startedAtMs,
    stop: () => child.stop(),
  };
}
