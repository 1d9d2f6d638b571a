import { dayMs, hourMs, type Clock } from "../../../platform/kernel/clock.ts";
import { PassingMap } from "../../../platform/kernel/passing/passing-map.ts";
import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import type { ReserveRequest, SpendingKey } from "../hold-rule.ts";
import { renewScript } from "./ledger-scripts.ts";
import { NodeLease } from "./node-lease.ts";
import type { OpenSubject } from "./open-charges.ts";
import { leaseMs, type LedgerPart, type SharedAccounts } from "./shared-accounts.ts";

/** A hold of a request that this process serves. */
export interface SharedHold {
  /**
   * The id under which the shared server and the charge know the hold: the request's id, or that of
   * the hold in advance.
   */
  id: string;
  /**
   * Whether the hold was taken before its request came, while the workspace had plenty of credits.
   */
  isAdvance: boolean;
  workspaceId: string;
  key: SpendingKey;
  parent: SpendingKey | undefined;
  /** The hold as the shared server stores it; undefined where the server stores nothing for it. */
  entry: string | undefined;
  heldNano: bigint;
  /** The server's run and the database's history in which the hold was taken (`eraOf`). */
  era: string | undefined;
  /** Whether the gateway asked the server to grow the hold and got no answer: it may have grown. */
  mayHaveGrown: boolean;
  /** The day on which the request was admitted, and the tags by which budgets count the hold. */
  day: number;
  tags: readonly string[];
  reservedAtMs: number;
  /** Whether the hold is being charged or released, which no second call may then do. */
  settling: boolean;
}

/** The day on which a request is admitted, and the tags by which budgets count it. */
export type HoldUse = Pick<SharedHold, "day" | "tags">;

/** Returns whether a limit of the request's keys counts callers' own provider keys. */
export const countsByok = ({ countsByok: own, parent }: ReserveRequest): boolean =>
  (own ?? false) || (parent?.countsByok ?? false);

/** Returns the current day and the tags by which budgets count a request. */
export const useOf = ({ tags }: ReserveRequest, clock: Clock): HoldUse => ({
  day: Math.floor(clock.nowMs() / dayMs),
  tags: tags?.() ?? [],
});

/** Returns the current hour, in hours since the epoch. */
export const hourOf = (clock: Clock): number => Math.floor(clock.nowMs() / hourMs);

/** Returns the record of a request's hold that this process keeps. */
export function holdOf(
  request: ReserveRequest,
  {
    clock,
    use = useOf(request, clock),
    id = request.holdId,
    entry,
    heldNano,
    era,
  }: {
    clock: Clock;
    use?: HoldUse;
    id?: string;
    entry: string | undefined;
    heldNano: bigint;
    era: string | undefined;
  },
): SharedHold {
  const { workspaceId, keyId, keyLimit, countsByok = false, parent } = request;
  const key = { keyId, keyLimit, countsByok };
  return {
    id,
    isAdvance: id !== request.holdId,
    workspaceId,
    key,
    parent,
    entry,
    heldNano,
    era,
    mayHaveGrown: false,
    ...use,
    reservedAtMs: clock.monotonicMs(),
    settling: false,
  };
}

/**
 * Returns the ids of the keys whose limits a hold counts towards: the key's own and its parent's.
 */
export const keyIdsOf = ({ key, parent }: Pick<SharedHold, "key" | "parent">): string[] =>
  parent === undefined ? [key.keyId] : [key.keyId, parent.keyId];

/** The most holds and charges that one message renews. */
const renewedAtOnce = 200;

/** The holds of this process, which it renews on the shared server. */
export class LocalHolds {
  private readonly accounts: SharedAccounts;
  private readonly clock: Clock;
  private readonly onError: (error: unknown) => void;
  private readonly holds = new PassingMap<SharedHold>();
  private onceNone: (() => void)[] = [];
  private timer: ReturnType<typeof setInterval> | undefined;
  private lease: NodeLease | undefined;

  constructor({
    accounts,
    clock,
    onError,
  }: {
    accounts: SharedAccounts;
    clock: Clock;
    onError(error: unknown): void;
  }) {
    this.accounts = accounts;
    this.clock = clock;
    this.onError = onError;
  }

  get count(): number {
    return this.holds.size;
  }

  has(id: string): boolean {
    return this.holds.has(id);
  }

  add(id: string, hold: SharedHold): void {
    this.holds.set(id, hold);
  }

  /** Returns a hold that is open; undefined where it is settled or being settled. */
  open(id: string): SharedHold | undefined {
    const hold = this.holds.get(id);
    return hold?.settling === false ? hold : undefined;
  }

  /** Marks an open hold as being settled and returns it; undefined where it already was. */
  beginSettling(id: string): SharedHold | undefined {
    const hold = this.holds.get(id);
    if (hold === undefined || hold.settling) return undefined;
    hold.settling = true;
    return hold;
  }

  /** Removes a hold that is settled, once its commit is queued. */
  remove(id: string): void {
    if (this.holds.delete(id) && this.holds.size === 0)
      for (const resolve of this.onceNone.splice(0)) resolve();
  }

  untilNone(): Promise<void> {
    if (this.holds.size === 0) return Promise.resolve();
    return new Promise((resolve) => void this.onceNone.push(resolve));
  }

  /** Returns the ids of the holds that were taken before a time on the monotonic clock. */
  olderThan(atMs: number): string[] {
    return this.holds
      .entries()
      .filter(([, hold]) => hold.reservedAtMs < atMs)
      .map(([id]) => id);
  }

  /**
   * Starts renewing the holds and the charges in progress: three times per lease, and whenever the
   * other gateways may have taken this one for dead.
   */
  start({
    chargesUnderWay,
    onLapse,
  }: {
    chargesUnderWay(): Iterable<[string, OpenSubject]>;
    /** Called when this gateway's lease had lapsed, so that the server may have freed its holds. */
    onLapse(): void;
  }): void {
    const renew = (part?: LedgerPart): void => void this.renew(chargesUnderWay(), part);
    const renewAfterLapse = (part: LedgerPart): void => {
      onLapse();
      renew(part);
    };
    this.timer = setInterval(() => renew(), leaseMs / 3);
    const { accounts, clock, onError } = this;
    this.lease = new NodeLease({ accounts, clock, onError, onLapse: renewAfterLapse });
    this.lease.start();
  }

  /**
   * Returns whether a commit that starts now ends before another gateway can free a hold of the
   * workspace.
   */
  areSafeIn(workspaceId: string): boolean {
    return this.lease?.isSureIn(this.accounts.partOf(workspaceId)) ?? true;
  }

  /** Stops renewing. Frees the holds at once where the gateway leaves for good. */
  stop(how: { leaves: boolean }): void {
    clearInterval(this.timer);
    this.lease?.stop(how);
  }

  /**
   * Renews the holds and charges in progress, in one part or in all. Restores the holds that the
   * server lost. Sends everything in one turn of the event loop, so that a message that ends a hold
   * goes out before all of it or after all of it.
   */
  async renew(charges: Iterable<[string, OpenSubject]>, part?: LedgerPart): Promise<void> {
    const byWorkspace = new Map<string, string[]>();
    const note = (workspaceId: string, values: string[]): void => {
      const noted = byWorkspace.get(workspaceId);
      if (noted === undefined) byWorkspace.set(workspaceId, values);
      else noted.push(...values);
    };
    for (const [, { id, workspaceId, entry, settling }] of this.holds.entries()) {
      if (entry !== undefined && !settling) note(workspaceId, [`h${id}`, entry]);
    }
    for (const [id, { workspaceId, entry }] of charges) {
      note(workspaceId, [`c${id}`, ""]);
      if (entry !== undefined) note(workspaceId, [`h${id}`, entry]);
    }
    const sent: Promise<unknown>[] = [];
    for (const [workspaceId, values] of byWorkspace) {
      if (part !== undefined && part !== this.accounts.partOf(workspaceId)) continue;
      for (let start = 0; start < values.length; start += 2 * renewedAtOnce) {
        const some = values.slice(start, start + 2 * renewedAtOnce);
        sent.push(this.accounts.run(renewScript, workspaceId, some));
      }
    }
    for (const outcome of await Promise.allSettled(sent)) {
      if (outcome.status === "rejected" && !(outcome.reason instanceof SharedStateAwayError))
        this.onError(outcome.reason);
    }
  }
}
