import type { Child, Children } from "../process/children.ts";
import type { Cores } from "../process/cores.ts";

/** What a peer may use to start. */
export interface PeerContext {
  children: Children;
  cores: Cores;
  /** The mock upstream. */
  mock: { port: number; child: Child };
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
  /** Makes it startable, or says why that is impossible here. */
  prepare(): Promise<{ ready: true; version: string } | { ready: false; reason: string }>;
  start(context: PeerContext): Promise<RunningPeer>;
}

/** Milliseconds that a peer may take to start. */
export const startTimeoutMs = 20_000;
