import type { Tool } from "../tool.ts";
import { adminErrorsOverview } from "./admin-errors-overview.ts";
import { adminGetUser } from "./admin-get-user.ts";
import { adminGrantCredits } from "./admin-grant-credits.ts";
import { adminListEndpoints } from "./admin-list-endpoints.ts";
import { adminListUsers } from "./admin-list-users.ts";
import { adminNorthStar } from "./admin-north-star.ts";
import { adminOverview } from "./admin-overview.ts";
import { adminRequest } from "./admin-request.ts";
import { adminSmokeTest } from "./admin-smoke-test.ts";
import { adminUpstreamHealth } from "./admin-upstream-health.ts";
import { adminUsageSummary } from "./admin-usage-summary.ts";
import { createKey } from "./create-key.ts";
import { getCredits } from "./get-credits.ts";
import { getOkfConcept } from "./get-okf-concept.ts";
import { getSystemStatus } from "./get-system-status.ts";
import { getUsage } from "./get-usage.ts";
import { listByokKeys } from "./list-byok-keys.ts";
import { listKeys } from "./list-keys.ts";
import { createHub } from "./create-hub.ts";
import { forkPrompt } from "./fork-prompt.ts";
import { getHub } from "./get-hub.ts";
import { hubAddItem } from "./hub-add-item.ts";
import { hubImportSkill } from "./hub-import-skill.ts";
import { listConversations } from "./list-conversations.ts";
import { listHubs } from "./list-hubs.ts";
import { publishPrompt } from "./publish-prompt.ts";
import { publishSkill } from "./publish-skill.ts";
import { searchPublicHubs } from "./search-public-hubs.ts";
import { starPrompt } from "./star-prompt.ts";
import { listModels } from "./list-models.ts";
import { listOkfConcepts } from "./list-okf-concepts.ts";
import { listPresets } from "./list-presets.ts";
import { recommendModel } from "./recommend-model.ts";
import { revokeKey } from "./revoke-key.ts";

/** Every tool of the MCP server, in the order in which clients see them. */
export const tools: readonly Tool[] = [
  listModels,
  recommendModel,
  getUsage,
  listByokKeys,
  listOkfConcepts,
  getOkfConcept,
  getCredits,
  listKeys,
  createKey,
  revokeKey,
  listPresets,
  getSystemStatus,
  listConversations,
  publishPrompt,
  starPrompt,
  forkPrompt,
  publishSkill,
  listHubs,
  getHub,
  searchPublicHubs,
  createHub,
  hubAddItem,
  hubImportSkill,
  // Operators
  adminListEndpoints,
  adminRequest,
  adminOverview,
  adminUsageSummary,
  adminNorthStar,
  adminListUsers,
  adminGetUser,
  adminErrorsOverview,
  adminSmokeTest,
  adminUpstreamHealth,
  adminGrantCredits,
];
