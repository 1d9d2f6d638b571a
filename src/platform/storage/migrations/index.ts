import type { Migration } from "../storage.ts";
import { firstSchema } from "./2026-11-23-first-schema.ts";
import { usageGrowths } from "./2026-11-25-growths-of-usage.ts";
import { months } from "./2026-11-25-months.ts";
import { presetOfBackgroundResponses } from "./responses/2026-11-25-preset-of-background-responses.ts";
import { closedMonths } from "./2026-11-26-closed-months.ts";
import { contents } from "./2026-11-26-contents.ts";
import { configurationEntries } from "./accounts/2026-11-28-configuration-entries.ts";
import { customers } from "./accounts/2026-11-28-customers.ts";
import { incidentNotices } from "./accounts/2026-11-28-incident-notices.ts";
import { mcpServers } from "./accounts/2026-11-28-mcp-servers.ts";
import { mcpTokenRefreshes } from "./accounts/2026-11-28-mcp-token-refreshes.ts";
import { operatorKeys } from "./accounts/2026-11-28-operator-keys.ts";
import { passedCaps } from "./2026-11-28-passed-caps.ts";
import { passthroughKeys } from "./accounts/2026-11-28-passthrough-keys.ts";
import { requiredSecondFactors } from "./accounts/2026-11-28-required-second-factors.ts";
import { runs } from "./accounts/2026-11-28-runs.ts";
import { teams } from "./accounts/2026-11-28-teams.ts";
import { zonedBudgets } from "./accounts/2026-11-28-zoned-budgets.ts";
import { senderDays } from "./2026-11-28-sender-days.ts";
import { storedBatches } from "./2026-11-28-stored-batches.ts";
import { storedFiles } from "./2026-11-28-stored-files.ts";
import { watchedBatches } from "./2026-11-28-watched-batches.ts";
import { workspaceAliases } from "./accounts/2026-11-28-workspace-aliases.ts";
import { storedProviderBatches } from "./2026-11-28-stored-provider-batches.ts";
import { runsOnOwnKeys } from "./accounts/2026-11-29-runs-on-own-keys.ts";
import { actsOfBackgroundResponses } from "./responses/2026-11-29-acts-of-background-responses.ts";
import { filesAtProviders } from "./2026-11-29-files-at-providers.ts";
import { providerBatchesInParts } from "./2026-11-29-provider-batches-in-parts.ts";

/**
 * Every migration, sorted by name, which begins with the date when it was written. Released
 * migrations are never changed.
 */
export const migrations: readonly Migration[] = [
  firstSchema,
  usageGrowths,
  months,
  presetOfBackgroundResponses,
  closedMonths,
  contents,
  configurationEntries,
  customers,
  incidentNotices,
  mcpServers,
  mcpTokenRefreshes,
  operatorKeys,
  passedCaps,
  passthroughKeys,
  requiredSecondFactors,
  runs,
  senderDays,
  storedBatches,
  storedFiles,
  storedProviderBatches,
  teams,
  watchedBatches,
  workspaceAliases,
  zonedBudgets,
  actsOfBackgroundResponses,
  filesAtProviders,
  providerBatchesInParts,
  runsOnOwnKeys,
];
