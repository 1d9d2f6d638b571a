import type { Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { DistinctTime } from "../distinct-time.ts";
import { Turns } from "../turns.ts";
import { parseRange } from "./address-range.ts";
import { letsIn, type AllowedRange, type IpAllowlist } from "./ip-allowlist.ts";
import type { IpAllowlistStore } from "./ip-allowlist-store.ts";

/** Entries that a workspace may have: each request from it is compared with all of them. */
const entriesMax = 500;

/** Who changes a list, so that nobody locks themselves out unawares. */
export interface ListChange {
  workspaceId: string;
  /** The address that the change comes from. */
  callerAddress: string;
  /** The caller knows that its own address may be shut out. */
  confirm: boolean;
}

/** Changes allowlists, one change of a workspace after the other; what is answered is in force. */
export class IpAllowlistEditor {
  private readonly store: IpAllowlistStore;
  private readonly allowlist: IpAllowlist;
  private readonly time: DistinctTime;
  private readonly turns = new Turns();

  constructor(options: { store: IpAllowlistStore; allowlist: IpAllowlist; clock: Clock }) {
    this.store = options.store;
    this.allowlist = options.allowlist;
    this.time = new DistinctTime(options.clock);
  }

  /** Adds a range. Throws `bad_request` for what is no range or would shut the caller out, `conflict` for one that is listed. */
  add(
    change: ListChange,
    { cidr, description }: { cidr: string; description: string | null },
  ): Promise<AllowedRange> {
    const range = parseRange(cidr);
    if (range === undefined) {
      throw new GatewayError(
        "bad_request",
        `cidr: must be an address or a range such as 203.0.113.0/24 or 2001:db8::/32, not ${cidr}.`,
        {
          param: "cidr",
        },
      );
    }
    return this.turns.run(change.workspaceId, async () => {
      const entries = this.allowlist.of(change.workspaceId);
      if (entries.some((entry) => entry.cidr === range.cidr)) {
        throw new GatewayError("conflict", `${range.cidr} is on the allowlist already.`, {
          param: "cidr",
        });
      }
      if (entries.length >= entriesMax) {
        throw new GatewayError(
          "bad_request",
          `An allowlist has at most ${entriesMax} entries. Delete some, or add wider ranges.`,
        );
      }
      const createdAtMs = this.time.nextMs();
      const { workspaceId } = change;
      const entry: AllowedRange = {
        id: newId("ipa", createdAtMs),
        workspaceId,
        cidr: range.cidr,
        description,
        createdAtMs,
      };
      const wanted = [entry, ...entries];
      assertStaysIn(change, wanted);
      await this.write(workspaceId, { wanted, work: () => this.store.insert(entry) });
      return entry;
    });
  }

  /** Takes an entry off. Throws `not_found`, and `bad_request` where the rest would shut the caller out. */
  remove(change: ListChange, id: string): Promise<void> {
    return this.turns.run(change.workspaceId, async () => {
      const entries = this.allowlist.of(change.workspaceId);
      const wanted = entries.filter((entry) => entry.id !== id);
      if (wanted.length === entries.length) {
        throw new GatewayError(
          "not_found",
          "There is no such entry on the allowlist. GET /security/ip-allowlist lists them.",
        );
      }
      assertStaysIn(change, wanted);
      await this.write(change.workspaceId, { wanted, work: () => this.store.remove(id) });
    });
  }

  /** Takes every entry off, so that whoever shut themselves out comes in again; gives what was on the list. */
  clear(workspaceId: string): Promise<readonly AllowedRange[]> {
    return this.turns.run(workspaceId, async () => {
      const entries = this.allowlist.of(workspaceId);
      await this.write(workspaceId, {
        wanted: [],
        work: async () => {
          for (const { id } of entries) await this.store.remove(id);
        },
      });
      return entries;
    });
  }

  /** A write whose answer was lost may stand all the same: what the database says then is what is in force. */
  private async write(
    workspaceId: string,
    { wanted, work }: { wanted: readonly AllowedRange[]; work: () => Promise<void> },
  ): Promise<void> {
    try {
      await work();
      this.allowlist.put(workspaceId, wanted);
    } catch (error) {
      const stored = await this.store.list(workspaceId).catch(() => undefined);
      if (stored !== undefined) this.allowlist.put(workspaceId, stored);
      throw error;
    }
  }
}

function assertStaysIn(
  { callerAddress, confirm }: ListChange,
  wanted: readonly AllowedRange[],
): void {
  if (confirm || letsIn(wanted, callerAddress)) return;
  throw new GatewayError(
    "bad_request",
    `This would shut out the address that you are calling from (${callerAddress}). Allow it first, or send confirm: true.`,
    { param: "confirm", metadata: { caller_address: callerAddress } },
  );
}
