import type { Kysely } from "kysely";
import type { Clock } from "../platform/lib/clock.ts";
import type { SharedState } from "../platform/shared-state/shared-state.ts";
import type { DatabaseEpoch } from "../platform/storage/database-epoch.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import { bootstrap, type BootstrapSettings } from "./bootstrap.ts";
import { BlockingBudgets } from "./budgets/blocking-budgets.ts";
import { openBudgets, type BudgetsTables } from "./budgets/open-budgets.ts";
import type { SpentBy } from "./budgets/budget-watch.ts";
import { openByok, type ByokTables, type MasterSecrets } from "./byok/open-byok.ts";
import { openIdempotentAnswers } from "./idempotency/idempotent-answers.ts";
import type { IdempotencyTables } from "./idempotency/idempotent-request-store.ts";
import { CredentialDirectory } from "./keys/credential-directory.ts";
import { CredentialUseStore, type CredentialUseTables } from "./keys/credential-use-store.ts";
import { CredentialUseWriter } from "./keys/credential-use-writer.ts";
import { LlmKeyEditor } from "./keys/llm-key-editor.ts";
import { LlmKeyMinter } from "./keys/llm-key-minter.ts";
import { LlmKeyStore, type LlmKeyTables } from "./keys/llm-key-store.ts";
import { loadCredentials } from "./keys/load-credentials.ts";
import { ManagementKeyEditor } from "./keys/management-key-editor.ts";
import { ManagementKeyStore, type ManagementKeyTables } from "./keys/management-key-store.ts";
import { createSecretHasher } from "./keys/secret-hasher.ts";
import { AccountBook } from "./ledger/account-book.ts";
import { BudgetCounters } from "./ledger/budget-counters.ts";
import { Ledger } from "./ledger/ledger.ts";
import type { LedgerPort } from "./ledger/ledger-port.ts";
import { LedgerStore, type LedgerTables } from "./ledger/ledger-store.ts";
import { createMailer, type MailSettings } from "./notify/mailer.ts";
import { openPeople, type PeopleSettings } from "./people/open-people.ts";
import type { PeopleTables } from "./people/people-tables.ts";
import { UserEditor } from "./people/user-editor.ts";
import { openSharedLedger } from "./ledger/shared/open-shared-ledger.ts";
import { openCredits, type PlanCredits } from "./ledger/open-credits.ts";
import { PresetDirectory } from "./presets/preset-directory.ts";
import { PresetEditor } from "./presets/preset-editor.ts";
import { PresetStore, type PresetTables } from "./presets/preset-store.ts";
import { openReferrals } from "./referrals/open-referrals.ts";
import type { ReferralSettings } from "./referrals/referral-settings.ts";
import type { ReferralTables } from "./referrals/referral-store.ts";
import { openSecurity, type SecurityTables } from "./security/open-security.ts";
import { revokeCredentials } from "./workspaces/revoke-credentials.ts";
import { WorkspaceEditor } from "./workspaces/workspace-editor.ts";
import { WorkspaceStore, type WorkspaceTables } from "./workspaces/workspace-store.ts";

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
  /** Where several gateways on this database see what each of them holds; absent where there is only this one. */
  shared?: { state: SharedState; nodeId: string; epoch?: DatabaseEpoch | undefined } | undefined;
  /** Where several gateways share the database, whether this one does what is done once. */
  isLeader?: (() => boolean) | undefined;
  /** Told when what processes share of the ledger could not be kept up; it is made good later. */
  onLedgerError(error: unknown): void;
  /** Told when monthly credits could not be given or taken back; it is tried again. */
  onCreditError(error: unknown): void;
  /** Absent, people come by invitation, with passwords and passkeys. */
  people?: PeopleSettings | undefined;
  /** Credits for bringing somebody; absent where none are given. */
  referrals?: ReferralSettings | undefined;
  /** Where mail is handed in; absent where none is sent. */
  mail?: MailSettings | undefined;
  /** Ranges of the operator's own networks that callers' webhooks may lead to. */
  webhookNetworks?: readonly string[];
  /** What was spent, from the counters of settlements. */
  spentBy: SpentBy;
  /** Where people reach the service, without a trailing slash; asked for with the first use. */
  publicUrl(): string;
  /** Told what the library for sign-in has to say. */
  onSignInLog(level: "debug" | "info" | "warn" | "error", message: string): void;
  /** Told when last uses of keys could not be written; they are tried again. */
  onUseError(error: unknown): void;
  /** Told when it could not be stored that a donated provider key is refused, or works again. */
  onProviderKeyError(error: unknown): void;
}

/** Every part of the account plane. */
export type Account = Awaited<ReturnType<typeof openAccount>>;

/** Builds the account plane, fills its memory from the database and makes what the first start needs. */
export async function openAccount({ database, commits, clock, ...options }: AccountOptions) {
  const hasher = createSecretHasher(options.encryptionKey);
  const directory = new CredentialDirectory(hasher);
  const stores = {
    workspaces: new WorkspaceStore(database.withTables()),
    llmKeys: new LlmKeyStore(database.withTables()),
    managementKeys: new ManagementKeyStore(database.withTables()),
    uses: new CredentialUseStore(database.withTables()),
  };
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
