import { isWithin, parseRange, type AddressRange } from "./address-range.ts";

/** A range of addresses that a workspace may be reached from. */
export interface AllowedRange {
  /** `ipa_` id. */
  id: string;
  workspaceId: string;
  /** As `parseRange` shows it. */
  cidr: string;
  description: string | null;
  createdAtMs: number;
}

const rangesOf = (entries: readonly AllowedRange[]): AddressRange[] =>
  entries.flatMap(({ cidr }) => parseRange(cidr) ?? []);

/** Whether entries let an address in: an empty list lets everyone in. */
export const letsIn = (entries: readonly AllowedRange[], address: string): boolean =>
  entries.length === 0 || isWithin(address, rangesOf(entries));

/** The allowlists of all workspaces in memory, so that a request never waits for the database. */
export class IpAllowlist {
  /** Told of the workspace whose list changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  private readonly entries = new Map<string, readonly AllowedRange[]>();
  private readonly ranges = new Map<string, readonly AddressRange[]>();

  /** Replaces a workspace's list as a whole. */
  put(workspaceId: string, entries: readonly AllowedRange[]): void {
    this.onChange(workspaceId);
    this.entries.set(workspaceId, entries);
    if (entries.length === 0) this.ranges.delete(workspaceId);
    else this.ranges.set(workspaceId, rangesOf(entries));
  }

  /** A workspace's entries, the newest first. */
  of(workspaceId: string): readonly AllowedRange[] {
    return this.entries.get(workspaceId) ?? [];
  }

  /** Whether a workspace may be reached from an address, which is asked for only where there is a list. */
  allows(workspaceId: string, address: () => string): boolean {
    const ranges = this.ranges.get(workspaceId);
    return ranges === undefined || isWithin(address(), ranges);
  }
}
