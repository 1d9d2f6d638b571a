import { commandKeyName, type CommandKey } from "./process/command-socket.ts";
import type { HashCost } from "../identity/people/sign-in/password-hasher.ts";
import type { Kysely } from "kysely";
import {
  openIdempotentAnswers,
  type IdempotencyTables,
  type IdempotentAnswers,
} from "../access/idempotent-answers.ts";
import { openSecurity, type Security, type SecurityTables } from "../access/open-security.ts";
import type { SpentBy, SpentByEach } from "../billing/budgets/budget-watch.ts";
import type { Budget } from "../billing/budgets/budget.ts";
import { TeamEditor } from "../identity/teams/team-editor.ts";
import { openBudgets, type Budgets, type BudgetsTables } from "../billing/budgets/open-budgets.ts";
import { ClosedMonths } from "../billing/ledger/closed/closed-months.ts";
import type { LedgerPort } from "../billing/ledger/ledger-port.ts";
import type { LedgerTables } from "../billing/ledger/ledger-store.ts";
import { openCredits, type Credits, type PlanCredits } from "../billing/credits/open-credits.ts";
import { openLedger, type OpenedLedger, type SharedHolds } from "../billing/ledger/open-ledger.ts";
import {
  openCustomers,
  type Customers,
  type CustomerSettings,
} from "../billing/customers/open-customers.ts";
import type { MeterEventTables } from "../billing/customers/meter-events.ts";
import type { CustomerTables } from "../billing/customers/customer-store.ts";
import { openRuns, type RunChannel, type Runs } from "../billing/runs/open-runs.ts";
import type { RunTables } from "../billing/runs/run-store.ts";
import type { ReferralTables } from "../billing/referrals/referral-store.ts";
import { openReferrals, type Referrals } from "../billing/referrals/referrals.ts";
import { openByok, type Byok, type ByokTables } from "../byok/open-byok.ts";
import { loadCredentials } from "../identity/keys/credential-directory.ts";
import { openPeople, type People } from "../identity/people/open-people.ts";
import type { PeopleTables } from "../identity/people/people-tables.ts";
import { UserEditor } from "../identity/people/user-editor.ts";
import type { PresetTables } from "../identity/presets/preset-store.ts";
import { bootstrap } from "../identity/workspaces/bootstrap.ts";
import { revokeCredentials } from "../identity/workspaces/revoke-credentials.ts";
import type { Workspace } from "../identity/workspaces/workspace-store.ts";
import { WorkspaceEditor } from "../identity/workspaces/workspace-editor.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { createMailer, type Mailer } from "../platform/notify/mailer.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { AppSettings } from "./settings-of.ts";
import { scopes } from "../identity/keys/scopes.ts";
import { type KeyTables, type Keys, openKeys } from "./parts/open-keys.ts";
import { withTables } from "../platform/storage/with-tables.ts";
import type { AliasTables } from "../identity/workspaces/alias-store.ts";
import { type Aliases, openAliases } from "../identity/workspaces/alias-editor.ts";
import { type Presets, openPresets } from "../identity/presets/preset-editor.ts";

/** All database tables of the account plane. */
export type AccountTables = KeyTables &
  PeopleTables &
  LedgerTables &
  PresetTables &
  AliasTables &
  ByokTables &
  SecurityTables &
  IdempotencyTables &
  BudgetsTables &
  RunTables &
  CustomerTables &
  MeterEventTables &
  ReferralTables;

/** The settings that the account plane depends on. */
type AccountSettings = Pick<
  AppSettings,
  | "encryptionKey"
  | "masterSecrets"
  | "bootstrap"
  | "plans"
  | "people"
  | "referrals"
  | "mail"
  | "webhookNetworks"
  | "publicUrl"
>;

/** Takes failures of the account plane's background work; each work is tried again. */
export interface AccountReports {
  /** Called when the shared ledger could not be updated. */
  onLedgerError(error: unknown): void;
  /** Called when a run could not be released. */
  onRunError(error: unknown): void;
  /** Called when customers could not be written or read. */
  onCustomerError(error: unknown): void;
  /** Called when monthly credits could not be granted or expired. */
  onCreditError(error: unknown): void;
  /** Called when last uses of keys could not be written. */
  onUseError(error: unknown): void;
  /** Called when the state of a donated provider key could not be stored. */
  onProviderKeyError(error: unknown): void;
  /** Logs a message of the sign-in library. */
  onSignInLog(level: "debug" | "info" | "warn" | "error", message: string): void;
}

/** Options of the account plane. */
interface AccountOptions {
  settings: AccountSettings;
  database: Kysely<AccountTables>;
  commits: CommitQueue;
  clock: Clock;
  reports: AccountReports;
  /**
   * The holds that several gateways on this database share; absent where there is only this one.
   */
  shared: SharedHolds | undefined;
  /**
   * Returns whether this gateway, among several on the database, runs the jobs that run once;
   * absent where there is one.
   */
  isLeader: (() => boolean) | undefined;
  /** The channel to other gateways on the database; absent where there are none. */
  channel: RunChannel | undefined;
  /** The cost of a password's hash in place of the recommended one. */
  passwordCost: HashCost | undefined;
  /** The rule for end customers. */
  customerSettings: CustomerSettings;
  /** Returns what was spent, from the counters of settlements. */
  spentBy: SpentBy;
  /** Returns what each customer, or each value of a tag, spent. */
  spentByEach: SpentByEach;
  /** Begins the sum of a budget in a time zone with what was spent before. */
  beginSum(budget: Budget): Promise<void>;
}

/** Every part of the account plane. */
export interface Account extends Keys, Omit<OpenedLedger, "load">, Credits, Presets, Aliases, Byok {
  /** The workspace whose management keys are operators' keys. */
  operatorWorkspaceId: string;
  /** Closes months of the ledger. */
  closedMonths: ClosedMonths;
  /** The credits that come with plans each month. */
  planCredits: PlanCredits;
  /** Creates the key that a first start shows; undefined on every other start. */
  mintFirstKey(): Promise<string | undefined>;
  mintCommandKey(): Promise<CommandKey>;
  workspaceEditor: WorkspaceEditor;
  people: People;
  userEditor: UserEditor;
  budgets: Budgets;
  /** Undefined where no credits are granted for referrals. */
  referrals: Referrals | undefined;
  /** Undefined where no mail is sent. */
  mailer: Mailer | undefined;
  runs: Runs;
  customers: Customers;
  teamEditor: TeamEditor;
  idempotentAnswers: IdempotentAnswers;
  security: Security;
}

/**
 * Builds the account plane, loads its memory from the database and creates what a first start
 * needs.
 */
export async function openAccount(options: AccountOptions): Promise<Account> {
  const { settings, database, commits, clock, reports } = options;
  const { encryptionKey } = settings;
  const { onUseError } = reports;
  const keys = openKeys({ database: withTables(database), clock, encryptionKey, onUseError });
  const opened = openLedger({
    database: withTables(database),
    commits,
    clock,
    spentBy: options.spentBy,
    spentByEach: options.spentByEach,
    shared: options.shared,
    loadParents: () => keys.llmKeys.loadParents(),
    onLedgerError: reports.onLedgerError,
  });
  const { presets, aliases, byok, ...first } = await loadMemory(options, { keys, opened });
  const { mintFirstKey, firstWorkspaceId } = await bootstrap(
    {
      workspaces: keys.workspaces,
      llmKeys: keys.llmKeys,
      managementKeys: keys.managementKeys,
      minter: keys.llmKeyMinter,
      directory: keys.directory,
      hasher: keys.hasher,
      ledger: opened.ledger,
      ledgerStore: opened.ledgerStore,
      clock,
    },
    { settings: settings.bootstrap, existing: first.workspaces, hasKeys: first.hasKeys },
  );
  const mailer = settings.mail === undefined ? undefined : createMailer(settings.mail);
  const { credits, referrals } = openGifts(options, { keys, ledger: opened.ledger, mailer });
  const people = await openAccountPeople(options, { keys, mailer, referrals, firstWorkspaceId });
  keys.useWriter.start();
  await credits.monthlyCredits.run();
  credits.monthlyCredits.start();
  return {
    ...keys,
    ...credits,
    ...byok,
    ...presets,
    ...aliases,
    ...openEditors(options, { keys, byok, people, firstWorkspaceId }),
    ledger: opened.ledger,
    ledgerStore: opened.ledgerStore,
    blockingBudgets: opened.blockingBudgets,
    closedMonths: new ClosedMonths({ database: withTables(database), encryptionKey }),
    people,
    referrals,
    mailer,
    mintFirstKey,
    mintCommandKey: () => mintCommandKey(keys, { workspaceId: firstWorkspaceId, clock }),
    operatorWorkspaceId: firstWorkspaceId,
    planCredits: settings.plans,
    budgets: await openAccountBudgets(options, { keys, people, opened, mailer }),
    customers: await openAccountCustomers(options, { keys, opened }),
    runs: await openAccountRuns(options, { keys, opened }),
    idempotentAnswers: openIdempotentAnswers(withTables(database), {
      vault: byok.providerKeyVault,
      hasher: keys.hasher,
      clock,
    }),
    security: await openSecurity({
      database: withTables(database),
      commits,
      clock,
      encryptionKey,
    }),
  };
}

/** Opens users, their sessions and their organisations. */
const openAccountPeople = (
  { settings, database, clock, passwordCost, reports }: AccountOptions,
  {
    keys,
    mailer,
    referrals,
    firstWorkspaceId,
  }: {
    keys: Keys;
    mailer: Mailer | undefined;
    referrals: Referrals | undefined;
    firstWorkspaceId: string;
  },
): Promise<People> =>
  openPeople({
    database: withTables(database),
    clock,
    encryptionKey: settings.encryptionKey,
    hasher: keys.hasher,
    directory: keys.directory,
    firstWorkspaceId,
    settings: settings.people ?? { signUp: "invitation", plan: "free", oidc: [] },
    passwordCost,
    referrals,
    mailer,
    publicUrl: settings.publicUrl,
    log: reports.onSignInLog,
  });

/** Opens budgets, and puts those in force that block. */
const openAccountBudgets = (
  { settings, database, clock, spentBy, beginSum }: AccountOptions,
  {
    keys,
    people,
    opened: { ledger, blockingBudgets: blocking },
    mailer,
  }: { keys: Keys; people: People; opened: OpenedLedger; mailer: Mailer | undefined },
): Promise<Budgets> =>
  openBudgets({
    database: withTables(database),
    clock,
    encryptionKey: settings.encryptionKey,
    mailer,
    webhookNetworks: settings.webhookNetworks ?? [],
    spentBy,
    beginSum,
    users: people.users,
    teams: keys.teamStore,
    llmKeys: keys.llmKeys,
    blocking,
    ledger,
  });

/** Opens runs, which are carved out of the limits of keys. */
const openAccountRuns = (
  { settings, database, commits, clock, channel, reports }: AccountOptions,
  { keys, opened: { ledger } }: { keys: Keys; opened: OpenedLedger },
): Promise<Runs> =>
  openRuns({
    database: withTables(database),
    commits,
    clock,
    directory: keys.directory,
    hasher: keys.hasher,
    ledger,
    channel,
    publicUrl: settings.publicUrl,
    onError: reports.onRunError,
  });

/** Opens end customers, whose plans bound what their requests may cost. */
const openAccountCustomers = (
  { settings, customerSettings, database, commits, clock, channel, reports }: AccountOptions,
  { keys, opened: { ledger, blockingBudgets: blocking } }: { keys: Keys; opened: OpenedLedger },
): Promise<Customers> =>
  openCustomers({
    database: withTables(database),
    commits,
    clock,
    encryptionKey: settings.encryptionKey,
    settings: customerSettings,
    ledger,
    blocking,
    workspaceIds: () => keys.directory.allWorkspaces().map(({ id }) => id),
    channel,
    onError: reports.onCustomerError,
  });

/** What is loaded before the first request. */
interface LoadedMemory {
  workspaces: Workspace[];
  hasKeys: boolean;
  presets: Presets;
  aliases: Aliases;
  byok: Byok;
}

/** Loads credentials, balances, presets, aliases and provider keys in parallel. */
async function loadMemory(
  { database, clock, settings: { encryptionKey, masterSecrets }, reports }: AccountOptions,
  { keys, opened }: { keys: Keys; opened: OpenedLedger },
): Promise<LoadedMemory> {
  const { workspaces: stored, llmKeys, managementKeys, uses, teamStore: teams } = keys;
  const [{ workspaces, hasKeys }, , presets, aliases, byok] = await Promise.all([
    loadCredentials(keys.directory, { workspaces: stored, llmKeys, managementKeys, uses, teams }),
    opened.load(),
    openPresets(withTables(database), clock),
    openAliases(withTables(database), clock),
    openByok({
      database: withTables(database),
      clock,
      uses: keys.directory.uses,
      masterSecrets: masterSecrets ?? { current: encryptionKey, previous: [] },
      onError: reports.onProviderKeyError,
    }),
  ]);
  return { workspaces, hasKeys, presets, aliases, byok };
}

/**
 * Builds what gives workspaces credits: each month with their plan, by the operator, and for
 * referrals.
 */
function openGifts(
  { settings: { plans, referrals }, database, commits, clock, isLeader, reports }: AccountOptions,
  { keys, ledger, mailer }: { keys: Keys; ledger: LedgerPort; mailer: Mailer | undefined },
): { credits: Credits; referrals: Referrals | undefined } {
  const { directory, hasher } = keys;
  const { onCreditError: onError } = reports;
  const credits = openCredits({
    database: withTables(database),
    commits,
    clock,
    ledger,
    plans,
    onError,
    isLeader,
    workspaces: () => directory.allWorkspaces().filter(({ blocked }) => !blocked),
  });
  return {
    credits,
    referrals: openReferrals({
      settings: referrals,
      database: withTables(database),
      grants: credits.grants,
      hasher,
      clock,
      isLeader,
      sendsMail: mailer !== undefined,
      onError,
    }),
  };
}

/** Milliseconds for which a key of the command works, where the command does not revoke it. */
const commandKeyMs = 10 * 60_000;

/** Creates a key with every scope in the operator's workspace, for one run of the command. */
async function mintCommandKey(
  { managementKeyEditor, directory }: Pick<Keys, "managementKeyEditor" | "directory">,
  { workspaceId, clock }: { workspaceId: string; clock: Clock },
): Promise<CommandKey> {
  const { secret } = await managementKeyEditor.mint({
    workspaceId,
    name: commandKeyName,
    description: null,
    scopes,
    expiresAtMs: clock.nowMs() + commandKeyMs,
    creatorUserId: null,
  });
  return {
    secret,
    workspace: { id: workspaceId, name: directory.workspace(workspaceId)?.name ?? "" },
  };
}

/** Builds what changes workspaces and people, and revokes their credentials with them. */
function openEditors(
  { database, clock }: AccountOptions,
  {
    keys,
    byok,
    people,
    firstWorkspaceId: operatorWorkspaceId,
  }: { keys: Keys; byok: Byok; people: People; firstWorkspaceId: string },
): Pick<Account, "workspaceEditor" | "userEditor" | "teamEditor"> {
  const { directory, workspaces } = keys;
  return {
    teamEditor: new TeamEditor({
      store: keys.teamStore,
      directory,
      clock,
      peopleIn: (workspaceId) => people.users.peopleIn(workspaceId),
    }),
    workspaceEditor: new WorkspaceEditor({
      store: workspaces,
      directory,
      operatorWorkspaceId,
      nowMs: () => clock.nowMs(),
    }),
    userEditor: new UserEditor({
      users: people.users,
      sessions: people.sessions,
      database: withTables(database),
      clock,
      operatorWorkspaceId,
      workspace: (id) => directory.workspace(id),
      putWorkspace: (workspace) => directory.putWorkspace(workspace),
      revokeCredentials: (id) =>
        revokeCredentials(
          {
            llmKeys: keys.llmKeys,
            llmKeyEditor: keys.llmKeyEditor,
            managementKeys: keys.managementKeys,
            managementKeyEditor: keys.managementKeyEditor,
            providerKeyDirectory: byok.providerKeyDirectory,
            providerKeyEditor: byok.providerKeyEditor,
            clock,
          },
          id,
        ),
    }),
  };
}
