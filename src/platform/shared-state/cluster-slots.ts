/** Slots of a cluster, each of which one of its servers has. */
const slotCount = 16_384;

/**
 * Parts that what gateways share is divided into where it is kept by a cluster. Names of everything
 * there are made of it, so it can never change.
 */
export const partCount = 64;

const slotsPerPart = slotCount / partCount;

/** Where a server of a cluster is. */
export interface NodeAddress {
  host: string;
  port: number;
}

/** Who has the slots of a cluster, as one of its servers tells. */
export interface SlotMap {
  /** The primary that has a slot; undefined where none does. */
  ownerOf(slot: number): NodeAddress | undefined;
  /** Every server that is named, replicas as well. */
  nodes: readonly NodeAddress[];
}

/** The slot of a hash tag (CRC16 with the polynomial 0x1021; Redis cluster specification). */
export function slotOf(tag: string): number {
  let sum = 0;
  for (const byte of Buffer.from(tag)) {
    sum ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1)
      sum = (sum & 0x8000) === 0 ? sum << 1 : ((sum << 1) ^ 0x1021) & 0xffff;
  }
  return sum % slotCount;
}

/** Which part a name belongs to. */
export const partIndexOf = (name: string): number => Math.floor(slotOf(name) / slotsPerPart);

/**
 * The hash tags of all parts, one slot each. Their slots are as evenly spread as the slots of
 * servers are, so that each server has as many parts as its share.
 */
export function partTags(): string[] {
  const tags: string[] = [];
  for (let number = 0, left = partCount; left > 0; number += 1) {
    const tag = String(number);
    const index = partIndexOf(tag);
    if (tags[index] !== undefined) continue;
    tags[index] = tag;
    left -= 1;
  }
  return tags;
}

type NodeAnswer = [host: string | null, port: number, id: string, ...rest: unknown[]];
type SlotsAnswer = [first: number, last: number, ...nodes: NodeAnswer[]][];

/** Reads what `CLUSTER SLOTS` answers; a server without a name of its own is at `askedHost`. */
export function readSlots(answer: unknown, askedHost: string): SlotMap {
  const ranges = (answer as SlotsAnswer).map(([first, last, ...nodes]) => ({
    first,
    last,
    nodes: nodes.map(([host, port]) => ({ host: namedHost(host) ?? askedHost, port })),
  }));
  return {
    ownerOf: (slot) => ranges.find(({ first, last }) => slot >= first && slot <= last)?.nodes[0],
    nodes: ranges.flatMap(({ nodes }) => nodes),
  };
}

/** A server that does not know its host says null, nothing, or `?`. */
const namedHost = (host: string | null): string | undefined =>
  host === null || host === "" || host === "?" ? undefined : host;
