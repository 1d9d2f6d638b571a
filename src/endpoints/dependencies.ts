import type { EffectiveSetting } from "../platform/config/effective-settings.ts";
import type { Budgets } from "../account/budgets/open-budgets.ts";
import type { KeyProber } from "../account/byok/key-prober.ts";
import type { ProviderKeyDirectory } from "../account/byok/provider-key-directory.ts";
import type { ProviderKeyEditor } from "../account/byok/provider-key-editor.ts";
import type { ProviderKeyUsage } from "../account/byok/provider-key-usage.ts";
import type { ProviderKeys } from "../account/byok/provider-keys.ts";
import type { CredentialDirectory } from "../account/keys/credential-directory.ts";
import type { LlmKeyEditor } from "../account/keys/llm-key-editor.ts";
import type { LlmKeyMinter } from "../account/keys/llm-key-minter.ts";
import type { LlmKeyStore } from "../account/keys/llm-key-store.ts";
import type { ManagementKeyEditor } from "../account/keys/management-key-editor.ts";
import type { ManagementKeyStore } from "../account/keys/management-key-store.ts";
import type { GrantStore } from "../account/ledger/grant-store.ts";
import type { Grants } from "../account/ledger/grants.ts";
import type { LedgerPort } from "../account/ledger/ledger-port.ts";
import type { Statements } from "../account/ledger/statement.ts";
import type { LedgerStore } from "../account/ledger/ledger-store.ts";
import type { PlanCredits } from "../account/ledger/open-credits.ts";
import type { Payments } from "../account/payments/open-payments.ts";
import type { People } from "../account/people/open-people.ts";
import type { UserEditor } from "../account/people/user-editor.ts";
import type { PresetDirectory } from "../account/presets/preset-directory.ts";
import type { PresetEditor } from "../account/presets/preset-editor.ts";
import type { Referrals } from "../account/referrals/referrals.ts";
import type { Security } from "../account/security/open-security.ts";
import type { WorkspaceEditor } from "../account/workspaces/workspace-editor.ts";
import type { Consent } from "../consent/open-consent.ts";
import type { Documents } from "../documents/open-documents.ts";
import type { EndpointPaths } from "../http/endpoint-paths.ts";
import type { RateCounters } from "../http/count-request.ts";
import type { McpService } from "../mcp/mcp-service.ts";
import type { Conversations } from "../mcp/hub/conversations.ts";
import type { HubLibrary } from "../mcp/hub/open-hub.ts";
import type { RouteHistory } from "../inference/catalog/route-history.ts";
import type { InferenceDependencies } from "../inference/dependencies.ts";
import type { AnswerCache } from "../inference/surfaces/embeddings/answer-cache.ts";
import type { BackgroundRunner } from "../inference/stored-responses/background-runner.ts";
import type { ResponseStore } from "../inference/stored-responses/response-store.ts";
import type { GenerationStore } from "../insights/generation-store.ts";
import type { Insights } from "../insights/open-insights.ts";
import type { Clock } from "../platform/lib/clock.ts";

/** A file of the dashboard, in memory. */
export interface DashboardFile {
  bytes: Uint8Array<ArrayBuffer>;
  /** The same compressed with gzip; undefined where it was not compressed. */
  gzipped: Uint8Array<ArrayBuffer> | undefined;
  type: string;
}

/** What the pages of the dashboard are served from. */
export interface Dashboard {
  /** Whether the dashboard is served at all. */
  readonly isOn: boolean;
  /** The one HTML page; undefined while the dashboard is being built. */
  index(): string | undefined;
  /** A file such as `assets/main-1a2b.js`; undefined where there is none. */
  file(name: string): DashboardFile | undefined;
}

/** What operational endpoints tell about the process. */
export interface Operations {
  /** Names of what is not ready yet; empty when requests can be served. */
  unreadyParts(): Promise<string[]>;
  metricsText(): Promise<string>;
  metricsContentType: string;
  /** Whether `/metrics` is served here or on a port of its own. */
  metricsHere: boolean;
  version: string;
  /** The settings in force, without secrets. */
  settings: readonly EffectiveSetting[];
}

/** The documentation site. */
export interface Documentation {
  /** The file at a path below `/docs`; undefined where there is none. */
  file(path: string): { type: string; text: string } | undefined;
}

/** Everything that endpoints are given. */
export interface Dependencies {
  inference: InferenceDependencies;
  ledger: LedgerPort;
  ledgerStore: LedgerStore;
  statements: Statements;
  grants: Grants;
  grantStore: GrantStore;
  /** The workspace of whoever runs the service. */
  operatorWorkspaceId: string;
  /** What comes with plans each month. */
  planCredits: PlanCredits;
  llmKeys: LlmKeyStore;
  llmKeyMinter: LlmKeyMinter;
  llmKeyEditor: LlmKeyEditor;
  managementKeys: ManagementKeyStore;
  managementKeyEditor: ManagementKeyEditor;
  directory: CredentialDirectory;
  people: People;
  userEditor: UserEditor;
  workspaceEditor: WorkspaceEditor;
  presets: PresetDirectory;
  presetEditor: PresetEditor;
  providerKeys: ProviderKeys;
  providerKeyDirectory: ProviderKeyDirectory;
  providerKeyEditor: ProviderKeyEditor;
  providerKeyUsage: ProviderKeyUsage;
  keyProber: KeyProber;
  generations: GenerationStore;
  insights: Insights;
  routeHistory: RouteHistory;
  responses: ResponseStore;
  background: BackgroundRunner;
  documents: Documents;
  /** Id of the model that reads pages of files in place of the converter; undefined where none is configured. */
  ocrModel: string | undefined;
  embeddingCache: AnswerCache;
  security: Security;
  budgets: Budgets;
  consent: Consent;
  mcp: McpService;
  hub: HubLibrary;
  /** The built dashboard. */
  dashboard: Dashboard;
  conversations: Conversations;
  /** Undefined where no credits are given for bringing somebody. */
  referrals: Referrals | undefined;
  /** Undefined where no key for Stripe is configured. */
  payments: Payments | undefined;
  counters: RateCounters;
  operations: Operations;
  /** Paths of the endpoint table. */
  endpointPaths: EndpointPaths;
  clock: Clock;
  /** What the operator prescribes for Claude Code. */
  claudeCode: {
    loginNotice?: string | undefined;
    managedSettings?: Readonly<Record<string, unknown>> | undefined;
  };
  /** Where people reach the service, without a trailing slash. */
  publicUrl(): string;
  /** Text of the OpenAPI document of the table. */
  openApiText(): string;
  /** The documentation, opened when it is first asked for. */
  documentation(): Promise<Documentation>;
  /** Id of a model for examples, which costs nothing where there is such a one. */
  exampleModel(): string;
}
