import type { Kysely } from "kysely";
import type { Clock } from "../platform/kernel/clock.ts";
import type { SharedState } from "../platform/shared-state/shared-state.ts";
import type { DatabaseEpoch } from "../platform/storage/database-epoch.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import { bootstrap, type BootstrapSettings } from "../identity/workspaces/bootstrap.ts";
import type { SpentBy } from "../billing/budgets/budget-watch.ts";
import { BlockingBudgets } from "../billing/budgets/budget.ts";
import type { ReferralSettings, ReferralTables } from "../billing/referrals/referral-store.ts";
import { openReferrals, type Referrals } from "../billing/referrals/referrals.ts";
import { openByok, type Byok, type ByokTables, type MasterSecrets } from "../byok/open-byok.ts";
import { openBudgets, type Budgets, type BudgetsTables } from "../billing/budgets/open-budgets.ts";
import {
  openIdempotentAnswers,
  type IdempotencyTables,
  type IdempotentAnswers,
} from "../access/idempotent-answers.ts";
import {
  CredentialDirectory,
  CredentialUseStore,
  type CredentialUseTables,
  CredentialUseWriter,
  loadCredentials,
} from "../identity/keys/credential-directory.ts";
import { LlmKeyEditor, LlmKeyMinter } from "../identity/keys/llm-key-editor.ts";
import {
  ManagementKeyEditor,
  ManagementKeyStore,
  type ManagementKeyTables,
} from "../identity/keys/management-keys.ts";
import { createSecretHasher, type SecretHasher } from "../identity/keys/secret-hasher.ts";
import {
  PresetDirectory,
  PresetEditor,
  PresetStore,
  type PresetTables,
} from "../identity/presets/preset-store.ts";
import {
  WorkspaceEditor,
  WorkspaceStore,
  type WorkspaceTables,
} from "../identity/workspaces/workspace-store.ts";
import { LlmKeyStore, type LlmKeyTables } from "../identity/keys/llm-key-store.ts";
import { AccountBook, BudgetCounters } from "../billing/ledger/account-book.ts";
import { Ledger } from "../billing/ledger/ledger.ts";
import type { LedgerPort } from "../billing/ledger/ledger-port.ts";
import { LedgerStore, type LedgerTables } from "../billing/ledger/ledger-store.ts";
import { createMailer, type Mailer, type MailSettings } from "../platform/notify/mailer.ts";
import { openPeople, type People, type PeopleSettings } from "../identity/people/open-people.ts";
import type { PeopleTables } from "../identity/people/people-tables.ts";
import { UserEditor } from "../identity/people/user-editor.ts";
import { openSharedLedger } from "../billing/ledger/shared/open-shared-ledger.ts";
import { openCredits, type Credits, type PlanCredits } from "../billing/ledger/open-credits.ts";
import { openSecurity, type Security, type SecurityTables } from "../access/open-security.ts";
import { revokeCredentials } from "../identity/workspaces/revoke-credentials.ts";

/** Everything that the account plane keeps in the database. */
export type AccountTables = WorkspaceTables &
  PeopleTables &
  LlmKeyTables &
  ManagementKeyTables &
  CredentialUseTables &
  LedgerTables &
  PresetTables &
  ByokTables &
  SecurityTables &
  IdempotencyTables &
  BudgetsTables &
  ReferralTables;

/** What the account plane is built from. */
export interface AccountOptions {
  database: Kysely<AccountTables>;
  commits: CommitQueue;
  clock: Clock;
  encryptionKey: Uint8Array;
  /** What protects callers' own provider keys; absent means the encryption key. */
  masterSecrets?: MasterSecrets | undefined;
  bootstrap: BootstrapSettings;
  /** What comes with plans each month. */
  plans: PlanCredits;
  /**
   * Where several gateways on this database see what each of them holds; absent where there is only
   * this one.
   */
  shared?: { state: SharedState; nodeId: string; epoch?: DatabaseEpoch | undefined } | undefined;
  /** Where several gateways share the database, whether this one does what is done once. */
  isLeader?: (() => boolean) | undefined;
  /** Called when the shared ledger could not be updated; it is tried again. */
  onLedgerError(error: unknown): void;
  /** Called when monthly credits could not be given or taken back; it is tried again. */
  onCreditError(error: unknown): void;
  /** Absent, people come by invitation, with passwords and passkeys. */
  people?: PeopleSettings | undefined;
  /** Credits for referrals; absent where none are given. */
  referrals?: ReferralSettings | undefined;
  /** Where mail is handed in; absent where none is sent. */
  mail?: MailSettings | undefined;
  /** Ranges of the operator's own networks that callers' webhooks may lead to. */
  webhookNetworks?: readonly string[];
  /** What was spent, from the counters of settlements. */
  spentBy: SpentBy;
  /** Where people reach the service, without a trailing slash; asked for with the first use. */
  publicUrl(): string;
  /** Logs a message of the library for sign-in. */
  onSignInLog(level: "debug" | "info" | "warn" | "error", message: string): void;
  /** Called when last uses of keys could not be written; they are tried again. */
  onUseError(error: unknown): void;
  /** Called when the state of a donated provider key could not be stored. */
  onProviderKeyError(error: unknown): void;
}

/** Every part of the account plane. */
export interface Account extends Credits, Byok {
  /** The workspace whose management keys are operators'. */
  operatorWorkspaceId: string;
  /** Credits that come with plans each month. */
  planCredits: PlanCredits;
  directory: CredentialDirectory;
  hasher: SecretHasher;
  llmKeys: LlmKeyStore;
  llmKeyMinter: LlmKeyMinter;
  llmKeyEditor: LlmKeyEditor;
  managementKeys: ManagementKeyStore;
  managementKeyEditor: ManagementKeyEditor;
  /** Makes the key that a first start shows; undefined on every other start. */
  mintFirstKey(): Promise<string | undefined>;
  useWriter: CredentialUseWriter;
  workspaceEditor: WorkspaceEditor;
  people: People;
  userEditor: UserEditor;
  presets: PresetDirectory;
  presetEditor: PresetEditor;
  ledger: LedgerPort;
  ledgerStore: LedgerStore;
  blockingBudgets: BlockingBudgets;
  budgets: Budgets;
  /** Undefined where no credits are given for referrals. */
  referrals: Referrals | undefined;
  /** Undefined where no mail is sent. */
  mailer: Mailer | undefined;
  idempotentAnswers: IdempotentAnswers;
  security: Security;
}

/**
 * Builds the account plane, fills its memory from the database and makes what the first start
 * needs.
 */
export async function openAccount({
  database,
  commits,
  clock,
  ...options
}: AccountOptions): Promise<Account> {
  const hasher = createSecretHasher(options.encryptionKey);
  const directory = new CredentialDirectory(hasher);
  const stores = openStores(database);
  const { llmKeys, managementKeys } = stores;
  const ledgerStore = new LedgerStore({ database: database.withTables(), commits });
  const blocking = new BlockingBudgets();
  const loadParents = () => llmKeys.loadParents();
  const ledger = openLedger(
    { database, commits, clock, ...options },
    { blocking, store: ledgerStore, loadParents },
  );
  const masterSecrets = options.masterSecrets ?? { current: options.encryptionKey, previous: [] };
  const [loaded, , presets, byok] = await Promise.all([
    loadCredentials(directory, stores),
    loadParents().then((parents) =>
      ledgerStore.loadInto(ledger.book, { nowMs: clock.nowMs(), parents }),
    ),
    openPresets({ database, clock }),
    openByok({
      database: database.withTables(),
      clock,
      uses: directory.uses,
      masterSecrets,
      onError: options.onProviderKeyError,
    }),
  ]);
  const keyParts = { directory, hasher, clock };
  const llmKeyMinter = new LlmKeyMinter({ store: llmKeys, ...keyParts });
  const { mintFirstKey, firstWorkspaceId } = await bootstrap(
    { ...stores, minter: llmKeyMinter, directory, hasher, ledger, ledgerStore, clock },
    { settings: options.bootstrap, existing: loaded.workspaces, hasKeys: loaded.hasKeys },
  );
  const mailer = options.mail === undefined ? undefined : createMailer(options.mail);
  const credits = openCredits({
    database: database.withTables(),
    commits,
    clock,
    ledger,
    plans: options.plans,
    onError: options.onCreditError,
    isLeader: options.isLeader,
    workspaces: () => directory.allWorkspaces().filter(({ blocked }) => !blocked),
  });
  const referrals = openReferrals({
    settings: options.referrals,
    database: database.withTables(),
    grants: credits.grants,
    hasher,
    clock,
    isLeader: options.isLeader,
    sendsMail: mailer !== undefined,
    onError: options.onCreditError,
  });
  const people = await openPeople({
    ...options,
    mailer,
    referrals,
    database: database.withTables(),
    ...keyParts,
    firstWorkspaceId,
    settings: options.people ?? { signUp: "invitation", plan: "free", oidc: [] },
    log: options.onSignInLog,
  });
  const useWriter = new CredentialUseWriter({
    uses: directory.uses,
    store: stores.uses,
    onError: options.onUseError,
  });
  useWriter.start();
  await credits.monthlyCredits.run();
  credits.monthlyCredits.start();
  const editors = {
    llmKeyEditor: new LlmKeyEditor({ store: llmKeys, ...keyParts }),
    managementKeyEditor: new ManagementKeyEditor({ store: managementKeys, ...keyParts }),
  };
  return {
    ...credits,
    referrals,
    operatorWorkspaceId: firstWorkspaceId,
    planCredits: options.plans,
    ...editors,
    userEditor: new UserEditor({
      database: database.withTables(),
      clock,
      ...people,
      operatorWorkspaceId: firstWorkspaceId,
      workspace: (id) => directory.workspace(id),
      putWorkspace: (workspace) => directory.putWorkspace(workspace),
      revokeCredentials: (id) =>
        revokeCredentials({ ...editors, ...byok, llmKeys, managementKeys, clock }, id),
    }),
    hasher,
    directory,
    llmKeys,
    managementKeys,
    ledgerStore,
    ledger,
    llmKeyMinter,
    mintFirstKey,
    useWriter,
    people,
    mailer,
    workspaceEditor: new WorkspaceEditor({
      store: stores.workspaces,
      directory,
      operatorWorkspaceId: firstWorkspaceId,
      nowMs: () => clock.nowMs(),
    }),
    blockingBudgets: blocking,
    budgets: await openBudgets({
      ...options,
      database: database.withTables(),
      clock,
      mailer,
      users: people.users,
      llmKeys,
      blocking,
      ledger,
      webhookNetworks: options.webhookNetworks ?? [],
    }),
    idempotentAnswers: openIdempotentAnswers(database.withTables(), {
      vault: byok.providerKeyVault,
      hasher,
      clock,
    }),
    security: await openSecurity({
      database: database.withTables(),
      commits,
      clock,
      encryptionKey: options.encryptionKey,
    }),
    ...presets,
    ...byok,
  };
}

const openStores = (database: Kysely<AccountTables>) => ({
  workspaces: new WorkspaceStore(database.withTables()),
  llmKeys: new LlmKeyStore(database.withTables()),
  managementKeys: new ManagementKeyStore(database.withTables()),
  uses: new CredentialUseStore(database.withTables()),
});

/** The ledger of this process, or that of several where they share a server for it. */
function openLedger(
  {
    shared,
    database,
    commits,
    clock,
    spentBy,
    onLedgerError: onError,
  }: Omit<AccountOptions, "bootstrap">,
  parts: {
    blocking: BlockingBudgets;
    store: LedgerStore;
    loadParents(): Promise<ReadonlyMap<string, string>>;
  },
): LedgerPort {
  const book = new AccountBook();
  if (shared === undefined)
    return new Ledger({ book, commits, clock, budgets: new BudgetCounters({ ...parts, spentBy }) });
  const { state, ...place } = shared;
  return openSharedLedger({
    ...parts,
    spentBy,
    shared: state,
    nodeId: place.nodeId,
    epoch: place.epoch,
    book,
    commits,
    clock,
    database: database.withTables(),
    onError,
  });
}

async function openPresets({ database, clock }: Pick<AccountOptions, "database" | "clock">) {
  const store = new PresetStore(database.withTables());
  const presets = new PresetDirectory();
  for (const preset of await store.loadAll()) presets.put(preset);
  return { presets, presetEditor: new PresetEditor({ store, directory: presets, clock }) };
}
