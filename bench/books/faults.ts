import type { Clients } from "./clients.ts";
import type { ServedPeer } from "./served-peer.ts";

/** What breaks a gateway while clients ask it. */
export interface PeerFault {
  name: string;
  /**
   * Breaks it and mends it; gives the moment of `performance.now()` from which the time until it
   * serves again counts.
   */
  breaks(served: ServedPeer, clients: Clients): Promise<number>;
}

const faultMs = 8_000;

const restart = async (served: ServedPeer, clients: Clients): Promise<void> =>
  void (clients.port = await served.start());

async function killAndStart(served: ServedPeer, clients: Clients): Promise<number> {
  const killedMs = performance.now();
  await served.kill9();
  await restart(served, clients);
  return killedMs;
}

/** The failures that one process beside its own books can meet. */
export const peerFaults: readonly PeerFault[] = [
  { name: "nothing", breaks: async () => performance.now() },
  { name: "kill -9", breaks: killAndStart },
  {
    name: "SIGTERM",
    async breaks(served, clients) {
      const askedMs = performance.now();
      await served.terminate();
      await restart(served, clients);
      return askedMs;
    },
  },
  {
    name: "suspended for 8 s",
    async breaks(served) {
      served.signal("SIGSTOP");
      await Bun.sleep(faultMs);
      served.signal("SIGCONT");
      return performance.now();
    },
  },
  {
    name: "its books locked for 8 s",
    async breaks(served) {
      const unlock = await served.lockBooks();
      await Bun.sleep(faultMs);
      unlock();
      return performance.now();
    },
  },
];

/** So many kills, and so many answers before each. */
export const killsAmong = (kills: number, answersBefore: number): PeerFault => ({
  name: `kill -9, ${kills} times`,
  async breaks(served, clients) {
    let killedMs = 0;
    for (let kill = 0; kill < kills; kill += 1) {
      await clients.untilAnswered(answersBefore);
      killedMs = await killAndStart(served, clients);
    }
    return killedMs;
  },
});
