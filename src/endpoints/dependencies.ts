import type { EffectiveSetting } from "../platform/config/configuration.ts";
import type { Budgets } from "../billing/budgets/open-budgets.ts";
import type { KeyProber } from "../byok/key-prober.ts";
import type { Referrals } from "../billing/referrals/referrals.ts";
import type { ProviderKeyEditor } from "../byok/provider-key-editor.ts";
import type { ProviderKeyUsage } from "../byok/provider-key-usage.ts";
import type { ProviderKeys } from "../byok/provider-keys.ts";
import type { ProviderKeyDirectory } from "../byok/provider-key-directory.ts";
import type { Consent } from "../consent/open-consent.ts";
import type { CredentialDirectory } from "../identity/keys/credential-directory.ts";
import type { LlmKeyEditor } from "../identity/keys/llm-key-editor.ts";
import type { LlmKeyMinter } from "../identity/keys/llm-key-minter.ts";
import type { ManagementKeyStore } from "../identity/keys/management-key-store.ts";
import type { ManagementKeyEditor } from "../identity/keys/management-key-editor.ts";
import type { PresetEditor } from "../identity/presets/preset-editor.ts";
import type { PresetDirectory } from "../identity/presets/preset-directory.ts";
import type { AliasEditor } from "../identity/workspaces/alias-editor.ts";
import type { AliasDirectory } from "../identity/workspaces/alias-directory.ts";
import type { WorkspaceEditor } from "../identity/workspaces/workspace-editor.ts";
import type { LlmKeyStore } from "../identity/keys/llm-key-store.ts";
import type { Grants } from "../billing/credits/grants.ts";
import type { GrantStore } from "../billing/credits/grant-store.ts";
import type { MeterEvents } from "../billing/customers/meter-events.ts";
import type { Customers } from "../billing/customers/open-customers.ts";
import type { TeamEditor } from "../identity/teams/team-editor.ts";
import type { TeamStore } from "../identity/teams/team-store.ts";
import type { Runs } from "../billing/runs/open-runs.ts";
import type { LedgerPort } from "../billing/ledger/ledger-port.ts";
import type { Statements } from "../billing/credits/statements.ts";
import type { LedgerStore } from "../billing/ledger/ledger-store.ts";
import type { PlanCredits } from "../billing/credits/open-credits.ts";
import type { TryProvider } from "../inference/pipeline/unbilled-requests.ts";
import type { OperatorEntries } from "../operator/operator-entries.ts";
import type { Payments } from "../billing/payments/open-payments.ts";
import type { People } from "../identity/people/open-people.ts";
import type { UserEditor } from "../identity/people/user-editor.ts";
import type { Security } from "../access/open-security.ts";
import type { Documents } from "../documents/open-documents.ts";
import type { Batches } from "../batches/open-batches.ts";
import type { Files } from "../files/open-files.ts";
import type { RateCounters } from "../access/count-request.ts";
import type { IdempotentAnswers } from "../access/idempotent-answers.ts";
import type { EndpointPaths } from "../http/endpoint-paths.ts";
import type { RunsDoor } from "./runs/runs-door.ts";
import type { McpService } from "../mcp/mcp-service.ts";
import type { McpGateway } from "../mcp/gateway/open-gateway.ts";
import type { Conversations } from "../mcp/hub/conversations.ts";
import type { HubLibrary } from "../mcp/hub/hub-library.ts";
import type { RouteHistory } from "../inference/catalog/route-history.ts";
import type { PriceHistory } from "../inference/catalog/price-history.ts";
import type { InferenceDependencies } from "../inference/pipeline/execution.ts";
import type { AnswerCache } from "../inference/surfaces/embeddings/answer-cache.ts";
import type { BackgroundRunner } from "../inference/responses/background-runner.ts";
import type { ResponseStore } from "../inference/responses/response-store.ts";
import type { GenerationStore } from "../insights/generation-store.ts";
import type { Insights } from "../insights/open-insights.ts";
import type { HiddenTurns } from "./inference/tools/chat/hidden-turns.ts";
import type { ConfiguredSearch } from "../platform/config/search-settings.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { HostedFiles } from "../platform/spool/hosted-files.ts";
import type { Spool } from "../platform/spool/spool.ts";

/** A file of the dashboard, in memory. */
export interface DashboardFile {
  bytes: Uint8Array<ArrayBuffer>;
  /** The gzip-compressed bytes; undefined where the file was not compressed. */
  gzipped: Uint8Array<ArrayBuffer> | undefined;
  type: string;
}

/** The source of the dashboard's pages. */
export interface Dashboard {
  /** Whether the dashboard is served at all. */
  readonly isOn: boolean;
  /** Returns the one HTML page; undefined while the dashboard is being built. */
  index(): string | undefined;
  /** Returns a file such as `assets/main-1a2b.js`; undefined where there is none. */
  file(name: string): DashboardFile | undefined;
}

/** A gateway on the database. */
export interface GatewayNode {
  id: string;
  /** The machine, and the process where there are several on it. */
  name: string;
  version: string;
  startedAt: string;
  /** A fingerprint of the configuration, which differs where configurations do. */
  configuration: string;
  /** Sections of the configuration that have changed and take effect with the next start. */
  needsRestart: readonly string[];
  /** The reason why the last reload failed; null where it succeeded. */
  problem: string | null;
}

/** The gateways on the database. */
interface GatewayNodes {
  list(): Promise<readonly GatewayNode[]>;
  /** Makes all of them reload their configuration; rejects with this gateway's problem. */
  reload(): Promise<{
    change: Readonly<Record<"added" | "removed" | "repriced", readonly string[]>>;
    needsRestart: readonly string[];
    configuration: string;
  }>;
}

/** The data that operational endpoints report about the process. */
export interface Operations {
  /** Returns the names of parts that are not ready yet; empty when requests can be served. */
  unreadyParts(): Promise<string[]>;
  metricsText(): Promise<string>;
  metricsContentType: string;
  /** Whether `/metrics` is served here, as opposed to a port of its own. */
  metricsHere: boolean;
  version: string;
  /** The settings in force, without secrets. */
  settings: readonly EffectiveSetting[];
  nodes: GatewayNodes;
}

/** The documentation site. */
interface Documentation {
  /** Returns the file at a path below `/docs`; undefined where there is none. */
  file(path: string): { type: string; text: string } | undefined;
  /** Returns the page for a path that the site does not have, with the navigation. */
  missing(path: string): { type: string; text: string };
  /** The pages of operations by their paths below `/docs`. */
  readonly operations: { has(path: string): boolean };
  /** The sections in order, each with its pages; a page's address is `/docs/<section>/<page>`. */
  readonly sections: readonly { slug: string; pages: readonly { slug: string }[] }[];
}

/** The dependencies of all endpoints. */
export interface Dependencies {
  inference: InferenceDependencies;
  ledger: LedgerPort;
  ledgerStore: LedgerStore;
  statements: Statements;
  grants: Grants;
  grantStore: GrantStore;
  /** The workspace of the service's operator. */
  operatorWorkspaceId: string;
  customers: Customers;
  teamEditor: TeamEditor;
  teamStore: TeamStore;
  meterEvents: MeterEvents;
  runs: Runs & { door: RunsDoor };
  /** The credits that come with plans each month. */
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
  aliases: AliasDirectory;
  aliasEditor: AliasEditor;
  providerKeys: ProviderKeys;
  providerKeyDirectory: ProviderKeyDirectory;
  providerKeyEditor: ProviderKeyEditor;
  providerKeyUsage: ProviderKeyUsage;
  keyProber: KeyProber;
  generations: GenerationStore;
  insights: Insights;
  routeHistory: RouteHistory;
  priceHistory: PriceHistory;
  responses: ResponseStore;
  background: BackgroundRunner;
  documents: Documents;
  files: Files;
  batches: Batches;
  /**
   * The id of the model that reads pages of files in place of the converter; undefined where none
   * is configured.
   */
  ocrModel: string | undefined;
  /** Where uploads are kept while their requests are served. */
  spool: Spool;
  /** The most bytes of a file of sound. */
  audioBytesMax: number;
  /** Pictures that are handed out by their address for an hour. */
  hostedFiles: HostedFiles;
  /** The answers of calls that may be repeated with the same `Idempotency-Key`. */
  idempotentAnswers: IdempotentAnswers;
  embeddingCache: AnswerCache;
  security: Security;
  budgets: Budgets;
  consent: Consent;
  mcp: McpService;
  upstreamServers: McpGateway["upstreamServers"];
  toolCalls: McpGateway["toolCalls"];
  mcpGrants: McpGateway["mcpGrants"];
  serverWatch: McpGateway["serverWatch"];
  toolSecrets: McpGateway["toolSecrets"];
  agentServer: McpGateway["agentServer"];
  agentStreams: McpGateway["agentStreams"];
  /** The most model rounds of a request whose model calls tools. */
  maxToolRounds: number;
  /** The search of the web for models; undefined where the operator configured none. */
  search: ConfiguredSearch | undefined;
  /** Calls of the gateway's tools that clients of the chat dialect were not shown. */
  hiddenTurns: HiddenTurns;
  hub: HubLibrary;
  /** The built dashboard. */
  dashboard: Dashboard;
  /** Whether the operator named a key for callers of Ollama's door who send none. */
  hasOllamaDoor: boolean;
  conversations: Conversations;
  /** Undefined where no credits are granted for referrals. */
  referrals: Referrals | undefined;
  /** Undefined where no Stripe key is configured. */
  payments: Payments | undefined;
  counters: RateCounters;
  /** The most responses that one socket may have in progress at once. */
  socketLanes: number;
  operations: Operations;
  /** What operators configure in the page. */
  entries: OperatorEntries;
  /** Asks a provider that is not configured yet. */
  tryProvider: TryProvider;
  /** The paths of the endpoint table. */
  endpointPaths: EndpointPaths;
  clock: Clock;
  /** The operator's settings for Claude Code. */
  claudeCode: {
    loginNotice?: string | undefined;
    managedSettings?: Readonly<Record<string, unknown>> | undefined;
  };
  /** Returns where people reach the service, without a trailing slash. */
  publicUrl(): string;
  /** Returns the text of the endpoint table's OpenAPI document. */
  openApiText(): Promise<string>;
  /** Returns the documentation, which is opened on first use. */
  documentation(): Promise<Documentation>;
  /** Returns the id of a model for examples, a free one where there is any. */
  exampleModel(): string;
}
