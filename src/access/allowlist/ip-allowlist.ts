import type { RequestContext } from "../define-endpoint.ts";
import {
  isWithin,
  parseRange,
  type AddressRange,
} from "../../platform/kernel/network/address-range.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";

/** A range of addresses from which a workspace may be used. */
export interface AllowedRange {
  /** An `ipa_` id. */
  id: string;
  workspaceId: string;
  /** The range in the form that `parseRange` returns. */
  cidr: string;
  description: string | null;
  createdAtMs: number;
}

/** Returns the address ranges of entries. */
export const rangesOf = (entries: readonly AllowedRange[]): AddressRange[] =>
  entries.flatMap(({ cidr }) => parseRange(cidr) ?? []);

/**
 * Keeps the allowlists of all workspaces in memory, so that a request never waits for the database.
 */
export class IpAllowlist {
  /** Called with the workspace whose list changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  private readonly entries = new Map<string, readonly AllowedRange[]>();
  private readonly ranges = new Map<string, readonly AddressRange[]>();

  /** Replaces a workspace's whole list. */
  put(workspaceId: string, entries: readonly AllowedRange[]): void {
    this.onChange(workspaceId);
    this.entries.set(workspaceId, entries);
    if (entries.length === 0) this.ranges.delete(workspaceId);
    else this.ranges.set(workspaceId, rangesOf(entries));
  }

  /** Returns a workspace's entries, newest first. */
  of(workspaceId: string): readonly AllowedRange[] {
    return this.entries.get(workspaceId) ?? [];
  }

  /**
   * Returns whether a workspace may be used from an address, which is looked up only where there is
   * a list.
   */
  allows(workspaceId: string, address: () => string): boolean {
    const ranges = this.ranges.get(workspaceId);
    return ranges === undefined || isWithin(address(), ranges);
  }
}

/** A stored range. */
export interface IpAllowlistRow {
  id: string;
  workspace_id: string;
  cidr: string;
  description: string | null;
  created_at_ms: number;
}

/** Rows of allowlists. */
export interface IpAllowlistTables {
  ip_allowlist: IpAllowlistRow;
}

/** Refuses callers whose address is not on their workspace's allowlist. Throws `ip_not_allowed`. */
export function checkAddress(allowlist: IpAllowlist, context: RequestContext): void {
  const { caller } = context;
  if (
    caller.kind === "anonymous" ||
    allowlist.allows(caller.workspace.id, () => context.clientAddress())
  )
    return;
  const address = context.clientAddress();
  throw new GatewayError(
    "ip_not_allowed",
    `The address ${address} is not on the IP allowlist of this workspace.`,
    {
      metadata: { client_address: address },
    },
  );
}
