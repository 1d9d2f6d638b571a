/** The number of slots of a cluster, each of which one server owns. */
const slotCount = 16_384;

/**
 * The number of parts into which a cluster divides the shared state. It can never change, since the
 * names of all stored keys depend on it.
 */
export const partCount = 64;

const slotsPerPart = slotCount / partCount;

/** The address of a server of a cluster. */
export interface NodeAddress {
  host: string;
  port: number;
}

/** The owners of a cluster's slots, as one of its servers reports them. */
export interface SlotMap {
  /** Returns the primary that owns a slot; undefined where none does. */
  ownerOf(slot: number): NodeAddress | undefined;
  /** All servers in the report, replicas included. */
  nodes: readonly NodeAddress[];
}

/**
 * Returns the slot of a hash tag: its CRC16 with the polynomial 0x1021, as the Redis cluster
 * specification defines it.
 */
export function slotOf(tag: string): number {
  let sum = 0;
  for (const byte of Buffer.from(tag)) {
    sum ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1)
      sum = (sum & 0x8000) === 0 ? sum << 1 : ((sum << 1) ^ 0x1021) & 0xffff;
  }
  return sum % slotCount;
}

/** Returns the index of the part that a name belongs to. */
export const partIndexOf = (name: string): number => Math.floor(slotOf(name) / slotsPerPart);

/**
 * Returns the hash tags of all parts, one slot each. The tags spread the parts evenly over the
 * slots, so that each server has a share of the parts that matches its share of the slots.
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

/** Parses the answer to `CLUSTER SLOTS`. A server without a host of its own is at `askedHost`. */
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

/**
 * Returns the reported host. A server that does not know its host reports null, an empty text or
 * `?`.
 */
const namedHost = (host: string | null): string | undefined =>
  host === null || host === "" || host === "?" ? undefined : host;
