import type { Kysely, Transaction } from "kysely";
import type { SecretHasher } from "../../identity/keys/secret-hasher.ts";
import type { PeopleTables } from "../../identity/people/people-tables.ts";
import type { Referrer, SignUpReferrals } from "../../identity/people/sign-up.ts";
import { UserStore } from "../../identity/people/user-store.ts";
import { dayMs, minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import type { Grants } from "../credits/grants.ts";
import {
  dueAtOnceMax,
  ReferralStore,
  type NewReferral,
  type Referral,
  type ReferralSettings,
  type ReferralTables,
} from "./referral-store.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/** Options of referral credits. */
interface ReferralOptions {
  settings: ReferralSettings;
  store: ReferralStore;
  grants: Grants;
  hasher: SecretHasher;
  clock: Clock;
  /** Whether addresses can be confirmed. Sign-up credits then wait for that. */
  sendsMail: boolean;
  /** Returns the people of a workspace. */
  peopleIn(workspaceId: string): Promise<{ id: string; email: string }[]>;
  /**
   * Returns whether this gateway, among several on the database, runs the jobs that run once;
   * absent where there is one.
   */
  isLeader?: (() => boolean) | undefined;
  /** Called when credits could not be granted yet; it is tried again. */
  onError(error: unknown): void;
}

/** Days after signing up in which a user may still enter a referral code. */
const newcomerDays = 7;

const refused = (message: string): GatewayError => badField("referral_code", message);

/** Grants referral credits to both sides exactly once, as grants of the ledger. */
export class Referrals implements SignUpReferrals {
  readonly settings: ReferralSettings;
  readonly store: ReferralStore;
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly options: ReferralOptions) {
    this.settings = options.settings;
    this.store = options.store;
  }

  /**
   * Returns the workspace of the code that a new user enters. Throws `bad_request` for a code that
   * is unknown or their own.
   */
  async referrerOf(code: string, email: string): Promise<Referrer> {
    const workspace = await this.store.workspaceOf(code);
    if (workspace === undefined) throw refused("no workspace has this code.");
    const mailbox = mailboxOf(email);
    const people = await this.options.peopleIn(workspace.id);
    if (people.some((person) => mailboxOf(person.email) === mailbox))
      throw refused("this code is your own.");
    return { workspaceId: workspace.id, organizationId: workspace.organizationId };
  }

  /** Records a referral within a transaction. */
  note(
    transaction: Transaction<PeopleTables>,
    came: { referrer: Referrer; email: string; userId: string; workspaceId: string },
  ): Promise<boolean> {
    return this.store.note(this.newReferral(came), withTables(transaction));
  }

  /**
   * Records the referral of a user who did not sign up with a password. Throws `bad_request` for a
   * code that is unknown or their own, and `conflict` for a user who is not new, belongs to the
   * workspace, or was referred before.
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
    if (!isNoted) throw new GatewayError("conflict", "This person was referred before.");
    this.soon();
  }

  /**
   * Returns whether the owner of a workspace was referred and has not been granted the credits yet.
   */
  async holdsFor(workspaceId: string): Promise<boolean> {
    const referral = await this.store.bringing(workspaceId);
    if (referral === undefined || referral.rewarded) return false;
    return (referral.reward?.referredNano ?? this.settings.referredNano) > 0n;
  }

  /** Starts to grant what is due every minute. */
  start(): void {
    this.timer = setInterval(() => {
      if (this.options.isLeader?.() !== false) this.soon();
    }, minuteMs);
  }

  /** Grants what is due in the background, after a run in progress. */
  soon(): void {
    this.running = this.running
      .then(() => this.run())
      .catch((error: unknown) => this.options.onError(error));
  }

  /** Resolves when no run is in progress. */
  idle(): Promise<void> {
    return this.running;
  }

  /** Stops; resolves when a run in progress has ended. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.running;
  }

  /** Grants everything that is due. What the database refuses is tried again on the next run. */
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

  /**
   * Grants the credits of one referral. Each grant has an id of its own, so it is made once across
   * all gateways.
   */
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
        description: "For a referral",
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

/**
 * Builds referral credits and starts to grant what is due; undefined where the operator grants
 * none.
 */
export function openReferrals({
  settings,
  database,
  ...options
}: Omit<ReferralOptions, "settings" | "store" | "peopleIn"> & {
  settings: ReferralSettings | undefined;
  database: Kysely<ReferralTables>;
}): Referrals | undefined {
  if (settings === undefined) return undefined;
  const users = new UserStore(withTables(database));
  const referrals = new Referrals({
    ...options,
    settings,
    store: new ReferralStore(database),
    peopleIn: (workspaceId) => users.peopleIn(workspaceId),
  });
  referrals.start();
  return referrals;
}

/**
 * Returns the mailbox behind an address in lower case: its owner chooses what comes after a `+`,
 * and at Gmail the dots. All addresses of one mailbox belong to one person.
 */
function mailboxOf(email: string): string {
  const at = email.lastIndexOf("@");
  const [host, [name = ""]] = [email.slice(at + 1), email.slice(0, at).split("+")];
  if (host === "gmail.com" || host === "googlemail.com")
    return `${name.replaceAll(".", "")}@gmail.com`;
  return `${name}@${host}`;
}
