import { isWithin, parseRange } from "../../platform/kernel/network/address-range.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { DistinctTime } from "../../platform/kernel/time/distinct-time.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { IpAllowlistStore } from "./ip-allowlist-store.ts";
import { type AllowedRange, rangesOf, type IpAllowlist } from "./ip-allowlist.ts";

/** Returns whether entries allow an address. An empty list allows every address. */
const allowsAddress = (entries: readonly AllowedRange[], address: string): boolean =>
  entries.length === 0 || isWithin(address, rangesOf(entries));

/** The most entries of a workspace: each of its requests is compared with all of them. */
const entriesMax = 500;

/**
 * A change to a list, with its caller's address, so that callers do not lock themselves out by
 * accident.
 */
interface ListChange {
  workspaceId: string;
  /** The address that the change comes from. */
  callerAddress: string;
  /** Whether the caller confirmed that the change may lock out its own address. */
  confirm: boolean;
}

type RangeStore = Pick<IpAllowlistStore, "insert" | "remove" | "list">;

/**
 * Changes allowlists, one change of a workspace at a time. A change is in force when it is
 * answered.
 */
export class IpAllowlistEditor {
  private readonly store: RangeStore;
  private readonly allowlist: IpAllowlist;
  private readonly time: DistinctTime;
  private readonly mutex = new KeyedMutex();

  constructor(options: { store: RangeStore; allowlist: IpAllowlist; clock: Clock }) {
    this.store = options.store;
    this.allowlist = options.allowlist;
    this.time = new DistinctTime(options.clock);
  }

  /**
   * Adds a range. Throws `bad_request` for a malformed range or one that would lock the caller out,
   * and `conflict` for one that is listed.
   */
  add(
    change: ListChange,
    { cidr, description }: { cidr: string; description: string | null },
  ): Promise<AllowedRange> {
    const range = parseRange(cidr);
    if (range === undefined) {
      throw badField(
        "cidr",
        `must be an address or a range such as 203.0.113.0/24 or 2001:db8::/32, not ${cidr}.`,
      );
    }
    return this.mutex.run(change.workspaceId, async () => {
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
      assertCallerStaysAllowed(change, [entry, ...entries]);
      await this.write(workspaceId, {
        work: () => this.store.insert(entry),
        changed: (current) => [entry, ...current.filter((each) => each.id !== entry.id)],
      });
      return entry;
    });
  }

  /**
   * Removes an entry. Throws `not_found`, and `bad_request` where the remaining entries would lock
   * the caller out.
   */
  remove(change: ListChange, id: string): Promise<void> {
    return this.mutex.run(change.workspaceId, async () => {
      const entries = this.allowlist.of(change.workspaceId);
      const wanted = entries.filter((entry) => entry.id !== id);
      if (wanted.length === entries.length) {
        throw new GatewayError(
          "not_found",
          "There is no such entry on the allowlist. GET /security/ip-allowlist lists them.",
        );
      }
      assertCallerStaysAllowed(change, wanted);
      await this.write(change.workspaceId, {
        work: () => this.store.remove(id),
        changed: (current) => current.filter((each) => each.id !== id),
      });
    });
  }

  /**
   * Removes every entry, so that people who locked themselves out regain access. Returns the
   * removed entries.
   */
  clear(workspaceId: string): Promise<readonly AllowedRange[]> {
    return this.mutex.run(workspaceId, async () => {
      const entries = this.allowlist.of(workspaceId);
      await this.write(workspaceId, {
        work: async () => {
          for (const { id } of entries) await this.store.remove(id);
        },
        changed: (current) => current.filter((each) => !entries.some(({ id }) => id === each.id)),
      });
      return entries;
    });
  }

  /**
   * Writes a change, and applies it to the list that is in force by then: another gateway may have
   * changed it during the write. Where the answer was lost, the write may still have happened, so
   * the list is read back and the database decides what is in force.
   */
  private async write(
    workspaceId: string,
    {
      work,
      changed,
    }: {
      work: () => Promise<void>;
      changed: (current: readonly AllowedRange[]) => readonly AllowedRange[];
    },
  ): Promise<void> {
    try {
      await work();
      this.allowlist.put(workspaceId, changed(this.allowlist.of(workspaceId)));
    } catch (error) {
      const stored = await this.store.list(workspaceId).catch(() => undefined);
      if (stored !== undefined) this.allowlist.put(workspaceId, stored);
      throw error;
    }
  }
}

function assertCallerStaysAllowed(
  { callerAddress, confirm }: ListChange,
  wanted: readonly AllowedRange[],
): void {
  if (confirm || allowsAddress(wanted, callerAddress)) return;
  throw new GatewayError(
    "bad_request",
    `This would shut out the address that you are calling from (${callerAddress}). Allow it first, or send confirm: true.`,
    { param: "confirm", metadata: { caller_address: callerAddress } },
  );
}
