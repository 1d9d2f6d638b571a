import type { Tool } from "../tool.ts";
import { adminErrorsOverview } from "./admin/admin-errors-overview.ts";
import { adminGetUser } from "./admin/admin-get-user.ts";
import { adminGrantCredits } from "./admin/admin-grant-credits.ts";
import { adminListEndpoints } from "./admin/admin-list-endpoints.ts";
import { adminListUsers } from "./admin/admin-list-users.ts";
import { adminNorthStar } from "./admin/admin-north-star.ts";
import { adminOverview } from "./admin/admin-overview.ts";
import { adminRequest } from "./admin/admin-request.ts";
import { adminSmokeTest } from "./admin/admin-smoke-test.ts";
import { adminUpstreamHealth } from "./admin/admin-upstream-health.ts";
import { adminUsageSummary } from "./admin/admin-usage-summary.ts";
import { getAlias, listAliases } from "./aliases.ts";
import { createKey } from "./keys/create-key.ts";
import { editImage } from "./media/edit-image.ts";
import { generateImage } from "./media/generate-image.ts";
import { generateSpeech } from "./media/generate-speech.ts";
import { transcribeAudio } from "./media/transcribe-audio.ts";
import { getCredits } from "./get-credits.ts";
import { getOkfConcept } from "./get-okf-concept.ts";
import { getCustomer, listCustomers } from "./customers.ts";
import { getRun } from "./get-run.ts";
import { getTeam, listTeams } from "./teams.ts";
import { getSystemStatus } from "./get-system-status.ts";
import { getUsage } from "./get-usage.ts";
import { listByokKeys } from "./keys/list-byok-keys.ts";
import { listKeys } from "./keys/list-keys.ts";
import { createHub } from "./hubs/create-hub.ts";
import { forkPrompt } from "./hubs/fork-prompt.ts";
import { getHub } from "./hubs/get-hub.ts";
import { hubAddItem } from "./hubs/hub-add-item.ts";
import { hubImportSkill } from "./hubs/hub-import-skill.ts";
import { listConversations } from "./list-conversations.ts";
import { listHubs } from "./hubs/list-hubs.ts";
import { publishPrompt } from "./hubs/publish-prompt.ts";
import { publishSkill } from "./hubs/publish-skill.ts";
import { searchPublicHubs } from "./hubs/search-public-hubs.ts";
import { starPrompt } from "./hubs/star-prompt.ts";
import { listModels } from "./models/list-models.ts";
import { listOkfConcepts } from "./list-okf-concepts.ts";
import { listPresets } from "./list-presets.ts";
import { recommendModel } from "./models/recommend-model.ts";
import { revokeKey } from "./keys/revoke-key.ts";

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
  listAliases,
  getAlias,
  getRun,
  listCustomers,
  getCustomer,
  listTeams,
  getTeam,
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
  generateImage,
  editImage,
  generateSpeech,
  transcribeAudio,
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
