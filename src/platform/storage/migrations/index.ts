import { unfinishedGenerations } from "./2026-12-16-unfinished-generations.ts";
import type { Migration } from "../migrate.ts";
import { firstSchema } from "./2026-11-21-first-schema.ts";
import { storedResponses } from "./2026-11-21-stored-responses.ts";
import { presetsAndKeyUses } from "./2026-11-22-presets-and-key-uses.ts";
import { childKeys } from "./2026-11-23-child-keys.ts";
import { insights } from "./2026-11-24-insights.ts";
import { securityAndGrants } from "./2026-11-25-security-and-grants.ts";
import { providerKeys } from "./2026-11-27-provider-keys.ts";
import { people } from "./2026-11-28-people.ts";
import { documentJobs } from "./2026-11-29-document-jobs.ts";
import { blocking } from "./2026-12-01-blocking.ts";
import { budgets } from "./2026-12-02-budgets.ts";
import { usageByKey } from "./2026-12-03-usage-by-key.ts";
import { userLinks } from "./2026-12-03-user-links.ts";
import { changedWorkspaces } from "./2026-12-06-changed-workspaces.ts";
import { referrals } from "./2026-12-07-referrals.ts";
import { connections } from "./2026-12-08-connections.ts";
import { signIn } from "./2026-12-08-sign-in.ts";
import { uncollected } from "./2026-12-08-uncollected.ts";
import { idempotentRequests } from "./2026-12-12-idempotent-requests.ts";
import { auditChain } from "./2026-12-13-audit-chain.ts";
import { backgroundRuns } from "./2026-12-13-background-runs.ts";
import { hub } from "./2026-12-15-hub.ts";
import { consentIndexes } from "./2026-12-16-consent-indexes.ts";
import { blockingBudgets } from "./2026-12-17-blocking-budgets.ts";
import { conversations } from "./2026-12-16-conversations.ts";
import { overdrawnAccounts } from "./2026-12-23-overdrawn-accounts.ts";
import { sharedFacts } from "./2026-12-23-shared-facts.ts";
import { preferencesAndVersions } from "./2026-12-21-preferences-and-versions.ts";
import { previousSecrets } from "./2026-12-21-previous-secrets.ts";
import { statements } from "./2026-12-21-statements.ts";
import { payments } from "./2026-11-30-payments.ts";

/** Every migration, in the order of its name; released ones are never changed. */
export const migrations: readonly Migration[] = [
  firstSchema,
  storedResponses,
  presetsAndKeyUses,
  childKeys,
  insights,
  securityAndGrants,
  providerKeys,
  people,
  documentJobs,
  payments,
  blocking,
  budgets,
  usageByKey,
  userLinks,
  changedWorkspaces,
  referrals,
  connections,
  signIn,
  uncollected,
  idempotentRequests,
  auditChain,
  backgroundRuns,
  hub,
  consentIndexes,
  conversations,
  unfinishedGenerations,
  blockingBudgets,
  preferencesAndVersions,
  previousSecrets,
  statements,
  overdrawnAccounts,
  sharedFacts,
];
