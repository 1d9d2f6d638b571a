import type { Transaction } from "kysely";
import { dayMs, minuteMs, type Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { SecretHasher } from "../keys/secret-hasher.ts";
import type { Grants } from "../ledger/grants.ts";
import type { PeopleTables } from "../people/people-tables.ts";
import { mailboxOf } from "./mailbox.ts";
import type { ReferralSettings } from "./referral-settings.ts";
import {
  dueAtOnceMax,
  type NewReferral,
  type Referral,
  type ReferralStore,
} from "./referral-store.ts";

/** What credits for bringing somebody are built from. */
export interface ReferralOptions {
  settings: ReferralSettings;
  store: ReferralStore;
  grants: Grants;
  hasher: SecretHasher;
  clock: Clock;
  /** Whether addresses can be confirmed; then credits for signing up wait for that. */
  sendsMail: boolean;
  /** Who is in a workspace. */
  peopleIn(workspaceId: string): Promise<{ id: string; email: string }[]>;
  /** Where several gateways share the database, whether this one does what is done once. */
  isLeader?: (() => boolean) | undefined;
  /** Told when credits could not be given yet; it is tried again. */
  onError(error: unknown): void;
}

/** Who brings whom: the workspace of a code that may be used. */
export interface Referrer {
  workspaceId: string;
  /** Invitations to it are no reason for credits. */
  organizationId: string | null;
}

/** How long after signing up somebody may still name who brought them. */
const newcomerDays = 7;

const refused = (message: string): GatewayError =>
  new GatewayError("bad_request", `referral_code: ${message}`, { param: "referral_code" });

/** Credits for bringing somebody: both sides are given theirs once, as grants of the ledger. */
export class Referrals {
  readonly settings: ReferralSettings;
  readonly store: ReferralStore;
  private readonly options: ReferralOptions;
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(options: ReferralOptions) {
    this.options = options;
    this.settings = options.settings;
    this.store = options.store;
  }

  /** Whose code somebody names who signs up. Throws `bad_request` for a code that is nobody's, or their own. */
  async referrerOf(code: string, email: string): Promise<Referrer> {
    const workspace = await this.store.workspaceOf(code);
    if (workspace === undefined) throw refused("nobody has this code.");
    const mailbox = mailboxOf(email);
    const people = await this.options.peopleIn(workspace.id);
    if (people.some((person) => mailboxOf(person.email) === mailbox))
      throw refused("this code is your own.");
    return { workspaceId: workspace.id, organizationId: workspace.organizationId };
  }

  /** Notes who brought somebody, together with what else the transaction writes. */
  note(
    transaction: Transaction<PeopleTables>,
    came: { referrer: Referrer; email: string; userId: string; workspaceId: string },
  ): Promise<boolean> {
    return this.store.note(this.newReferral(came), transaction.withTables());
  }

  /**
   * Notes who brought somebody who came another way than with a password. Throws `bad_request` for a code that is nobody's or
   * their own, and `conflict` for whoever came some time ago, belongs to the workspace, or was brought before.
   */
  async accept(code: string, { userId, email }: { userId: string; email: string }): Promise<void> {
    const { clock } = this.options;
    const referrer = await this.referrerOf(code, email);
    const came = await this.store.newcomer(userId);
    const isNew =
      came !== undefined &&
      came.createdAtMs > clock.nowMs() - newcomerDays * dayMs &&
      !came.hasPaid;
    if (!isNew || came.organizationIds.includes(referrer.organizationId ?? "")) {
      throw new GatewayError(
        "conflict",
        `Codes are for people who came within ${newcomerDays} days, before their first top-up.`,
      );
    }
    const isNoted = await this.store.note(
      this.newReferral({ referrer, email, userId, workspaceId: came.workspaceId }),
    );
    if (!isNoted) throw new GatewayError("conflict", "Somebody has brought this person before.");
    this.soon();
  }

  /** Whether whoever owns a workspace came by a code and is yet to be given credits for it. */
  async holdsFor(workspaceId: string): Promise<boolean> {
    const referral = await this.store.bringing(workspaceId);
    if (referral === undefined || referral.rewarded) return false;
    return (referral.reward?.referredNano ?? this.settings.referredNano) > 0n;
  }

  /** Gives what is due every minute from now on. */
  start(): void {
    this.timer = setInterval(() => {
      if (this.options.isLeader?.() !== false) this.soon();
    }, minuteMs);
  }

  /** Gives what is due, after what is under way; nobody waits for it. */
  soon(): void {
    this.running = this.running
      .then(() => this.run())
      .catch((error: unknown) => this.options.onError(error));
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    return this.running;
  }

  /** Resolves when a run that is under way has ended. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.running;
  }

  /** Gives everything that is due; what the database refuses is tried again the next time. */
  async run(): Promise<void> {
    const {
      settings: { after },
      options: { sendsMail },
    } = this;
    let due: Referral[];
    let failed = false;
    do {
      due = await this.store.due({ after, verified: sendsMail });
      for (const referral of due) {
        await this.reward(referral).catch((error: unknown) => {
          failed = true;
          this.options.onError(error);
        });
      }
    } while (due.length === dueAtOnceMax && !failed);
  }

  private newReferral({
    referrer,
    email,
    ...came
  }: {
    referrer: Referrer;
    email: string;
    userId: string;
    workspaceId: string;
  }): NewReferral {
    return {
      ...came,
      referrerWorkspaceId: referrer.workspaceId,
      createdAtMs: this.options.clock.nowMs(),
      mailboxHash: this.options.hasher.hash(`mailbox ${mailboxOf(email)}`),
    };
  }

  /** Each grant has an id of its own, so that whoever is first gives it and nobody gives it again. */
  private async reward(referral: Referral): Promise<void> {
    const {
      store,
      settings,
      options: { clock, grants },
    } = this;
    const { reward, userId, workspaceId, referrerWorkspaceId } =
      referral.reward === undefined
        ? await store.decide(referral, { settings, nowMs: clock.nowMs() })
        : referral;
    const sides = [
      {
        side: "referrer",
        workspaceId: referrerWorkspaceId,
        amountNano: reward?.referrerNano ?? 0n,
        description: "For bringing somebody",
      },
      {
        side: "referred",
        workspaceId,
        amountNano: reward?.referredNano ?? 0n,
        description: "For coming with a referral code",
      },
    ];
    for (const { side, ...grant } of sides) {
      if (grant.amountNano <= 0n) continue;
      const transferId = `txn_referral_${userId}_${side}`;
      await grants.give({
        ...grant,
        transferId,
        bucket: "monthly",
        kind: "referral",
        grantedBy: "system",
      });
    }
    await store.markRewarded(userId, clock.nowMs());
  }
}
