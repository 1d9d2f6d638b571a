import { z } from "zod";
import type { LoadGenerator } from "./load/load-generator.ts";
import type { Peer, RunningPeer } from "./peers/peer.ts";
import { memoryOf, processTree, type ProcessMemory } from "./process/proc-stat.ts";

/** Memory of a peer around so many open and quiet streams. */
export interface StreamsMemory {
  streams: number;
  before?: ProcessMemory;
  open?: ProcessMemory;
  /** After all streams were closed from the client's side. */
  after?: ProcessMemory;
  /** Milliseconds until the upstream had seen every stream go; absent when some never went. */
  slotsBackMs?: number;
}

const statsSchema = z.object({ openStreams: z.number() });
/** Garbage collectors and allocators need a moment before memory says something. */
const settleMs = 700;
const openTimeoutMs = 15_000;
const slotsBackTimeoutMs = 5_000;

/** What is measured and with what. */
export interface StreamsMeasurement {
  peer: Peer;
  running: RunningPeer;
  load: LoadGenerator;
  mockPort: number;
  count: number;
}

/**
 * Opens quiet streams, reads the memory before, with and after them, and sees whether their
 * upstreams go away.
 */
export async function measureStreams(measurement: StreamsMeasurement): Promise<StreamsMemory> {
  const { peer, running, load, mockPort, count } = measurement;
  const pids = processTree(running.pid);
  const target = {
    port: running.port,
    path: peer.path,
    headers: peer.headers,
    model: `${peer.modelPrefix}quiet`,
    stream: true,
    bodyBytes: 1_000,
  };
  const before = await settledMemory(pids);
  const openBefore = await openUpstreams(mockPort);
  const opened = await load.openStreams({ target, connections: count, timeoutMs: openTimeoutMs });
  if (opened.open < count) {
    await load.closeStreams();
    throw new Error(
      `${opened.open} of ${count} streams opened: ${opened.firstError ?? "no reason given"}`,
    );
  }
  const open = await settledMemory(pids);
  await load.closeStreams();
  const slotsBackMs = await timeUntilClosed(mockPort, openBefore);
  const after = await settledMemory(pids);
  return {
    streams: count,
    ...(before === undefined ? {} : { before }),
    ...(open === undefined ? {} : { open }),
    ...(after === undefined ? {} : { after }),
    ...(slotsBackMs === undefined ? {} : { slotsBackMs }),
  };
}

async function settledMemory(pids: readonly number[]): Promise<ProcessMemory | undefined> {
  await Bun.sleep(settleMs);
  return memoryOf(pids);
}

async function openUpstreams(mockPort: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${mockPort}/stats`);
  return statsSchema.parse(await response.json()).openStreams;
}

/** Streams that an earlier peer never let go are none of this one's. */
async function timeUntilClosed(mockPort: number, openBefore: number): Promise<number | undefined> {
  const startedAtMs = performance.now();
  while (performance.now() - startedAtMs < slotsBackTimeoutMs) {
    if ((await openUpstreams(mockPort)) <= openBefore) return performance.now() - startedAtMs;
    await Bun.sleep(10);
  }
  return undefined;
}
