import { ClientSecrets } from "../identity/keys/client-secrets.ts";
import { commandKeyName, type CommandKey } from "./process/command-socket.ts";
import type { HashCost } from "../identity/people/passwords.ts";
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
import { TeamStore, type TeamTables } from "../identity/teams/team-store.ts";
import { openBudgets, type Budgets, type BudgetsTables } from "../billing/budgets/open-budgets.ts";
import { ClosedMonths } from "../billing/ledger/closed/closed-months.ts";
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
import type { ReferralSettings, ReferralTables } from "../billing/referrals/referral-store.ts";
import { openReferrals, type Referrals } from "../billing/referrals/referrals.ts";
import { openByok, type Byok, type ByokTables, type MasterSecrets } from "../byok/open-byok.ts";
import { loadCredentials, CredentialDirectory } from "../identity/keys/credential-directory.ts";
import {
  CredentialUseStore,
  CredentialUseWriter,
  type CredentialUseTables,
} from "../identity/keys/credential-uses.ts";
import { openPeople, type People, type PeopleSettings } from "../identity/people/open-people.ts";
import type { PeopleTables } from "../identity/people/people-tables.ts";
import { UserEditor } from "../identity/people/user-editor.ts";
import { openPresets, type Presets, type PresetTables } from "../identity/presets/preset-store.ts";
import {
  openAliases,
  type Aliases,
  type AliasTables,
} from "../identity/workspaces/workspace-aliases.ts";
import { bootstrap, type BootstrapSettings } from "../identity/workspaces/bootstrap.ts";
import { revokeCredentials } from "../identity/workspaces/revoke-credentials.ts";
import {
  WorkspaceEditor,
  WorkspaceStore,
  type Workspace,
  type WorkspaceTables,
} from "../identity/workspaces/workspace-store.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { createMailer, type Mailer, type MailSettings } from "../platform/notify/mailer.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import { LlmKeyEditor } from "../identity/keys/llm-key-editor.ts";
import { LlmKeyMinter } from "../identity/keys/llm-key-minter.ts";
import { scopes } from "../identity/keys/scopes.ts";
import { createSecretHasher, type SecretHasher } from "../identity/keys/secret-hasher.ts";
import { LlmKeyStore, type LlmKeyTables } from "../identity/keys/llm-key-store.ts";
import { ManagementKeyStore, type ManagementKeyTables } from "../identity/keys/management-keys.ts";
import { ManagementKeyEditor } from "../identity/keys/management-key-editor.ts";

/** Tables of workspaces and their credentials. */
type KeyTables = WorkspaceTables &
  LlmKeyTables &
  ManagementKeyTables &
  CredentialUseTables &
  Pick<TeamTables, "teams" | "team_members">;

/** The parts that store, look up, create and change the credentials of workspaces. */
interface Keys {
  hasher: SecretHasher;
  directory: CredentialDirectory;
  workspaces: WorkspaceStore;
  llmKeys: LlmKeyStore;
  llmKeyMinter: LlmKeyMinter;
  llmKeyEditor: LlmKeyEditor;
  managementKeys: ManagementKeyStore;
  managementKeyEditor: ManagementKeyEditor;
  /** Stores when credentials were last used. */
  uses: CredentialUseStore;
  useWriter: CredentialUseWriter;
  teamStore: TeamStore;
}

/** Builds the credential parts. The directory is empty until `loadCredentials` fills it. */
function openKeys({
  database,
  clock,
  encryptionKey,
  onUseError,
}: {
  database: Kysely<KeyTables>;
  clock: Clock;
  encryptionKey: Uint8Array;
  /** Called when last uses could not be written; they are tried again. */
  onUseError(error: unknown): void;
}): Keys {
  const hasher = createSecretHasher(encryptionKey);
  const directory = new CredentialDirectory(hasher, new ClientSecrets(encryptionKey));
  const llmKeys = new LlmKeyStore(database.withTables());
  const managementKeys = new ManagementKeyStore(database.withTables());
  const uses = new CredentialUseStore(database.withTables());
  const teamStore = new TeamStore(database.withTables());
  const parts = { directory, hasher, clock };
  return {
    hasher,
    directory,
    workspaces: new WorkspaceStore(database.withTables()),
    llmKeys,
    llmKeyMinter: new LlmKeyMinter({
      store: llmKeys,
      ...parts,
      teamsOf: (person) => teamStore.bindingTeams(person),
    }),
    teamStore,
    llmKeyEditor: new LlmKeyEditor({ store: llmKeys, ...parts }),
    managementKeys,
    managementKeyEditor: new ManagementKeyEditor({ store: managementKeys, ...parts }),
    uses,
    useWriter: new CredentialUseWriter({ uses: directory.uses, store: uses, onError: onUseError }),
  };
}

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

/** Options of the account plane. */
interface AccountOptions {
  database: Kysely<AccountTables>;
  commits: CommitQueue;
  clock: Clock;
  encryptionKey: Uint8Array;
  /** The secrets that protect callers' own provider keys; absent uses the encryption key. */
  masterSecrets?: MasterSecrets | undefined;
  bootstrap: BootstrapSettings;
  /** The credits that come with plans each month. */
  plans: PlanCredits;
  /**
   * The holds that several gateways on this database share; absent where there is only this one.
   */
  shared?: SharedHolds | undefined;
  /**
   * Returns whether this gateway, among several on the database, runs the jobs that run once;
   * absent where there is one.
   */
  isLeader?: (() => boolean) | undefined;
  /** Called when the shared ledger could not be updated; it is tried again. */
  onLedgerError(error: unknown): void;
  /** The channel to other gateways on the database, for runs; absent where there are none. */
  runChannel?: RunChannel | undefined;
  /** Called when a run could not be released yet; it is tried again. */
  onRunError(error: unknown): void;
  /** Called when customers could not be written or read yet; it is tried again. */
  onCustomerError(error: unknown): void;
  /** Called when monthly credits could not be granted or expired; it is tried again. */
  onCreditError(error: unknown): void;
  /**
   * Settings of signing in and up; absent, people come by invitation, with passwords and passkeys.
   */
  people?: PeopleSettings | undefined;
  /** The cost of a password's hash in place of the recommended one. */
  passwordCost?: HashCost | undefined;
  /** The credits for referrals; absent where none are granted. */
  referrals?: ReferralSettings | undefined;
  /** The rule for end customers. */
  customerSettings: CustomerSettings;
  /** The server that mail is sent through; absent where none is sent. */
  mail?: MailSettings | undefined;
  /** Ranges of the operator's own networks that callers' webhooks may reach. */
  webhookNetworks?: readonly string[];
  /** Returns what was spent, from the counters of settlements. */
  spentBy: SpentBy;
  /** Returns what each customer, or each value of a tag, spent. */
  spentByEach?: SpentByEach | undefined;
  /** Begins the sum of a budget in a time zone with what was spent before. */
  beginSum(budget: Budget): Promise<void>;
  /** Returns where people reach the service, without a trailing slash. Called on first use. */
  publicUrl(): string;
  /** Logs a message of the sign-in library. */
  onSignInLog(level: "debug" | "info" | "warn" | "error", message: string): void;
  /** Called when last uses of keys could not be written; they are tried again. */
  onUseError(error: unknown): void;
  /** Called when the state of a donated provider key could not be stored. */
  onProviderKeyError(error: unknown): void;
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
  const { database, commits, clock, encryptionKey, plans } = options;
  const keys = openKeys({ ...options, database: database.withTables() });
  const ledger = openLedger({
    ...options,
    database: database.withTables(),
    loadParents: () => keys.llmKeys.loadParents(),
  });
  const { presets, aliases, byok, ...first } = await loadMemory(options, { keys, ledger });
  const { mintFirstKey, firstWorkspaceId } = await bootstrap(
    { ...keys, ...ledger, minter: keys.llmKeyMinter, clock },
    { settings: options.bootstrap, existing: first.workspaces, hasKeys: first.hasKeys },
  );
  const mailer = options.mail === undefined ? undefined : createMailer(options.mail);
  const { credits, referrals } = openGifts(options, { keys, ledger, mailer });
  const people = await openPeople({
    ...options,
    ...keys,
    database: database.withTables(),
    mailer,
    referrals,
    firstWorkspaceId,
    settings: options.people ?? { signUp: "invitation", plan: "free", oidc: [] },
    log: options.onSignInLog,
  });
  keys.useWriter.start();
  await credits.monthlyCredits.run();
  credits.monthlyCredits.start();
  return {
    ...keys,
    ...ledger,
    ...credits,
    ...byok,
    ...presets,
    ...aliases,
    closedMonths: new ClosedMonths({ database: database.withTables(), encryptionKey }),
    people,
    referrals,
    mailer,
    mintFirstKey,
    mintCommandKey: () => mintCommandKey(keys, { workspaceId: firstWorkspaceId, clock }),
    operatorWorkspaceId: firstWorkspaceId,
    planCredits: plans,
    ...openEditors(options, { keys, byok, people, firstWorkspaceId }),
    budgets: await openBudgets({
      ...options,
      llmKeys: keys.llmKeys,
      database: database.withTables(),
      mailer,
      users: people.users,
      teams: keys.teamStore,
      blocking: ledger.blockingBudgets,
      ledger: ledger.ledger,
      webhookNetworks: options.webhookNetworks ?? [],
    }),
    customers: await openAccountCustomers(options, { keys, ledger }),
    runs: await openAccountRuns(options, { keys, ledger }),
    idempotentAnswers: openIdempotentAnswers(database.withTables(), {
      vault: byok.providerKeyVault,
      hasher: keys.hasher,
      clock,
    }),
    security: await openSecurity({
      database: database.withTables(),
      commits,
      clock,
      encryptionKey,
    }),
  };
}

/** Opens runs, which are carved out of the limits of keys. */
const openAccountRuns = (
  options: AccountOptions,
  { keys, ledger: { ledger } }: { keys: Keys; ledger: OpenedLedger },
): Promise<Runs> =>
  openRuns({
    ...options,
    ...keys,
    database: options.database.withTables(),
    ledger,
    channel: options.runChannel,
    onError: options.onRunError,
  });

/** Opens end customers, whose plans bound what their requests may cost. */
const openAccountCustomers = (
  options: AccountOptions,
  { keys, ledger: { ledger, blockingBudgets: blocking } }: { keys: Keys; ledger: OpenedLedger },
): Promise<Customers> =>
  openCustomers({
    ...options,
    database: options.database.withTables(),
    settings: options.customerSettings,
    ledger,
    blocking,
    workspaceIds: () => keys.directory.allWorkspaces().map(({ id }) => id),
    channel: options.runChannel,
    onError: options.onCustomerError,
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
  { database, clock, encryptionKey, masterSecrets, onProviderKeyError }: AccountOptions,
  { keys, ledger }: { keys: Keys; ledger: OpenedLedger },
): Promise<LoadedMemory> {
  const [{ workspaces, hasKeys }, , presets, aliases, byok] = await Promise.all([
    loadCredentials(keys.directory, { ...keys, teams: keys.teamStore }),
    ledger.load(),
    openPresets(database.withTables(), clock),
    openAliases(database.withTables(), clock),
    openByok({
      database: database.withTables(),
      clock,
      uses: keys.directory.uses,
      masterSecrets: masterSecrets ?? { current: encryptionKey, previous: [] },
      onError: onProviderKeyError,
    }),
  ]);
  return { workspaces, hasKeys, presets, aliases, byok };
}

/**
 * Builds what gives workspaces credits: each month with their plan, by the operator, and for
 * referrals.
 */
function openGifts(
  { database, commits, clock, plans, isLeader, referrals, onCreditError: onError }: AccountOptions,
  { keys, ledger, mailer }: { keys: Keys; ledger: OpenedLedger; mailer: Mailer | undefined },
): { credits: Credits; referrals: Referrals | undefined } {
  const { directory, hasher } = keys;
  const credits = openCredits({
    database: database.withTables(),
    commits,
    clock,
    ledger: ledger.ledger,
    plans,
    onError,
    isLeader,
    workspaces: () => directory.allWorkspaces().filter(({ blocked }) => !blocked),
  });
  return {
    credits,
    referrals: openReferrals({
      settings: referrals,
      database: database.withTables(),
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
      ...people,
      database: database.withTables(),
      clock,
      operatorWorkspaceId,
      workspace: (id) => directory.workspace(id),
      putWorkspace: (workspace) => directory.putWorkspace(workspace),
      revokeCredentials: (id) => revokeCredentials({ ...keys, ...byok, clock }, id),
    }),
  };
}
