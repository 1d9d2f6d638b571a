import { dayMs, hourMs, type Clock } from "../../../platform/kernel/clock.ts";
import { PassingMap } from "../../../platform/kernel/passing.ts";
import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import type { ReserveRequest } from "../hold-rule.ts";
import type { SpendingKey } from "../ledger.ts";
import { renewScript } from "./ledger-scripts.ts";
import { NodeLease } from "./node-lease.ts";
import type { OpenSubject } from "./open-charges.ts";
import { leaseMs, type LedgerPart, type SharedAccounts } from "./shared-accounts.ts";

/** A hold of a request that this process serves. */
export interface SharedHold {
  /** As the shared server and its charge know it: the request's, or that of an advance hold. */
  id: string;
  /** It was taken before its request came, while much was free. */
  isAdvance: boolean;
  workspaceId: string;
  key: SpendingKey;
  parent: SpendingKey | undefined;
  /** As the shared server has it; undefined where nothing is held there. */
  entry: string | undefined;
  heldNano: bigint;
  /** The run of the server, and the history of the database, that it was taken in (`era`). */
  era: string | undefined;
  /** It was to grow, and no answer came: the server may do it yet. */
  mayHaveGrown: boolean;
  /** The day on which the request was admitted, and what budgets count the hold by. */
  day: number;
  tags: readonly string[];
  reservedAtMs: number;
  /** It is being charged or freed, and no second call may do so. */
  settling: boolean;
}

/** The day on which a request is admitted, and what budgets count it by. */
type HoldUse = Pick<SharedHold, "day" | "tags">;

/** What a request counts for. */
export const useOf = ({ tags }: ReserveRequest, clock: Clock): HoldUse => ({
  day: Math.floor(clock.nowMs() / dayMs),
  tags: tags?.() ?? [],
});

/** The hour under way, counted from the epoch. */
export const hourOf = (clock: Clock): number => Math.floor(clock.nowMs() / hourMs);

/** A hold as it is kept of a request. */
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

/** The keys that a hold counts against. */
export const keyIdsOf = ({ key, parent }: Pick<SharedHold, "key" | "parent">): string[] =>
  parent === undefined ? [key.keyId] : [key.keyId, parent.keyId];

/** Holds that one message renews. */
const renewedAtOnce = 200;

/** The holds of this process, and their renewal. */
export class LocalHolds {
  private readonly accounts: SharedAccounts;
  private readonly clock: Clock;
  private readonly onError: (error: unknown) => void;
  private readonly holds = new PassingMap<SharedHold>();
  private onceNone: (() => void)[] = [];
  private timer: ReturnType<typeof setInterval> | undefined;
  private life: NodeLease | undefined;

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

  /** The hold, where it is open; undefined where it is settled or being settled. */
  open(id: string): SharedHold | undefined {
    const hold = this.holds.get(id);
    return hold?.settling === false ? hold : undefined;
  }

  /** Marks an open hold as settling; undefined where it is settled or being settled. */
  beginSettling(id: string): SharedHold | undefined {
    const hold = this.holds.get(id);
    if (hold === undefined || hold.settling) return undefined;
    hold.settling = true;
    return hold;
  }

  /** It is settled; what commits it is queued. */
  remove(id: string): void {
    if (this.holds.delete(id) && this.holds.size === 0)
      for (const resolve of this.onceNone.splice(0)) resolve();
  }

  untilNone(): Promise<void> {
    if (this.holds.size === 0) return Promise.resolve();
    return new Promise((resolve) => void this.onceNone.push(resolve));
  }

  /** Ids of the holds that were taken before a monotonic time. */
  olderThan(atMs: number): string[] {
    return this.holds
      .entries()
      .filter(([, hold]) => hold.reservedAtMs < atMs)
      .map(([id]) => id);
  }

  /**
   * Renews, three times a lease and whenever this gateway did not count as alive, what is held and
   * the charges that are under way.
   */
  start({
    chargesUnderWay,
    onLapse,
  }: {
    chargesUnderWay(): Iterable<[string, OpenSubject]>;
    /** This gateway did not count as alive: the server may have freed what it held. */
    onLapse(): void;
  }): void {
    const renew = (part?: LedgerPart): void => void this.renew(chargesUnderWay(), part);
    const renewAfterLapse = (part: LedgerPart): void => {
      onLapse();
      renew(part);
    };
    this.timer = setInterval(() => renew(), leaseMs / 3);
    const { accounts, clock, onError } = this;
    this.life = new NodeLease({ accounts, clock, onError, onLapse: renewAfterLapse });
    this.life.start();
  }

  /** Whether no other gateway can free a hold of a workspace while a commit lasts. */
  areSafeIn(workspaceId: string): boolean {
    return this.life?.isSureIn(this.accounts.partOf(workspaceId)) ?? true;
  }

  /** Renews no more; what is held is free at once where this gateway leaves. */
  stop(how: { leaves: boolean }): void {
    clearInterval(this.timer);
    this.life?.stop(how);
  }

  /**
   * Renews everything that is under way, or the share of one part; holds that the server lost are
   * there again after it. All is sent at once: what ends a hold is sent before this or after it,
   * never in between.
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
