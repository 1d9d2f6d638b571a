import type { Kysely, Transaction } from "kysely";
import type { SecretHasher } from "../../identity/keys/secret-hasher.ts";
import type { PeopleTables } from "../../identity/people/people-tables.ts";
import type { Referrer, SignUpReferrals } from "../../identity/people/sign-up.ts";
import { UserStore } from "../../identity/people/user-store.ts";
import { dayMs, minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Grants } from "../credits/grants.ts";
import {
  dueAtOnceMax,
  ReferralStore,
  type NewReferral,
  type Referral,
  type ReferralSettings,
  type ReferralTables,
} from "./referral-store.ts";

/** What referral credits are built from. */
interface ReferralOptions {
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
  /** Called when credits could not be given yet; it is tried again. */
  onError(error: unknown): void;
}

/** How long after signing up a user may still enter a referral code. */
const newcomerDays = 7;

const refused = (message: string): GatewayError =>
  new GatewayError("bad_request", `referral_code: ${message}`, { param: "referral_code" });

/** Referral credits: both sides are given theirs once, as grants of the ledger. */
export class Referrals implements SignUpReferrals {
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

  /**
   * The workspace of the code that a new user names. Throws `bad_request` for a code that is
   * unknown or their own.
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

  /** Writes a referral, together with what else the transaction writes. */
  note(
    transaction: Transaction<PeopleTables>,
    came: { referrer: Referrer; email: string; userId: string; workspaceId: string },
  ): Promise<boolean> {
    return this.store.note(this.newReferral(came), transaction.withTables());
  }

  /**
   * Writes the referral of a user who came another way than with a password. Throws `bad_request`
   * for a code that is unknown or their own, and `conflict` for a user who is not new, belongs to
   * the workspace, or was referred before.
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

  /** Whether the owner of a workspace was referred and is yet to be given credits for it. */
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

  /** Gives what is due in the background, after a run that is under way. */
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

  /**
   * Each grant has an id of its own, so that the first gateway gives it and no other gives it
   * again.
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
 * Builds referral credits and begins to give what is due; undefined where the operator
 * gives none.
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
  const users = new UserStore(database.withTables());
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
 * The mailbox behind an address in lower case: what comes after a `+` is the owner's own invention,
 * and so are dots at Gmail. All addresses of one mailbox belong to one person.
 */
function mailboxOf(email: string): string {
  const at = email.lastIndexOf("@");
  const [host, [name = ""]] = [email.slice(at + 1), email.slice(0, at).split("+")];
  if (host === "gmail.com" || host === "googlemail.com")
    return `${name.replaceAll(".", "")}@gmail.com`;
  return `${name}@${host}`;
}
