import { join } from "node:path";
import type { Peer } from "../peers/peer.ts";
import type { Children } from "../process/children.ts";
import { Clients } from "./clients.ts";
import { compareBooks, type BooksDifference } from "./compare-books.ts";
import type { PeerFault } from "./faults.ts";
import { startNumberedUpstream } from "./numbered-upstream.ts";
import { ServedPeer } from "./served-peer.ts";

/** What one fault did to the clients and the books of one gateway. */
export interface FaultResult extends BooksDifference {
  peer: string;
  fault: string;
  /** Answers that came whole. */
  answered: number;
  failed: number;
  broken: number;
  refused: number;
  secondsToNormal: number;
}

/** What a run needs. */
export interface FaultRun {
  peer: Peer;
  fault: PeerFault;
  /** Answers before the fault and after it. */
  answersAround: number;
  children: Children;
  /** A directory that is deleted after the run. */
  directory: string;
}

/** Gateways that write their books every five seconds get longer than that once clients are gone. */
const settleMs = 7_000;

/** Breaks a gateway under load, ends it in good order, and compares its books with the answers. */
export async function runFault(run: FaultRun): Promise<FaultResult> {
  const { peer, fault, answersAround, children, directory } = run;
  const upstream = startNumberedUpstream();
  const served = new ServedPeer(peer, {
    children,
    cores: {},
    mock: { port: upstream.port, child: { pid: process.pid } },
    directory: join(directory, `${peer.name}-${fault.name}`.replaceAll(/\W+/g, "-")),
  });
  try {
    const clients = new Clients(peer, await served.start());
    await clients.untilAnswered(answersAround);
    const beganMs = await fault.breaks(served, clients);
    await clients.untilNormal();
    const secondsToNormal = Math.round((performance.now() - beganMs) / 100) / 10;
    await clients.untilAnswered(answersAround);
    await clients.end();
    await Bun.sleep(settleMs);
    await served.terminate();
    const { answers, failed, broken, refused } = clients;
    return {
      peer: peer.name,
      fault: fault.name,
      answered: answers.length,
      ...{ failed, broken, refused, secondsToNormal },
      ...compareBooks(answers, await served.bookedIds()),
    };
  } finally {
    await served.stop();
    upstream.stop();
  }
}
