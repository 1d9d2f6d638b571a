import type { Endpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  changeUser,
  deleteUser,
  endUserSessions,
  getUser,
  issuePasswordReset,
  listUsers,
  removeSecondFactor,
} from "./users.ts";
import {
  changeAnyWorkspace,
  clearAllowlist,
  getWorkspace,
  listAllWorkspaces,
} from "./workspaces.ts";
import {
  deleteConfiguration,
  exportConfiguration,
  listConfiguration,
  putConfiguration,
  testConfiguration,
} from "./configuration.ts";
import { errorsOverview } from "./errors.ts";
import { explainAnyGeneration, listAllGenerations } from "./generations.ts";
import { grantCredits, listGrants } from "./grants.ts";
import { createIncident, deleteIncident, listIncidents, updateIncident } from "./incidents.ts";
import { listPlans } from "./plans.ts";
import { listSettings, reloadSettings } from "./settings.ts";
import { listSmokeTests, runSmokeTests } from "./smoke-tests.ts";
import { clearUpstream, listUpstreams } from "./upstreams.ts";
import { userUsage, workspaceUsage } from "./usage-of.ts";
import { northStar, overview, serviceUsage } from "./usage.ts";
import { approvePrompt, listReviews, rejectPrompt } from "../hub/prompts.ts";

/** The routes of operators; a part of the table in `endpoints/index.ts`. */
export const operatorEndpoints: readonly Endpoint<Dependencies>[] = [
  grantCredits,
  listGrants,
  listUsers,
  getUser,
  userUsage,
  changeUser,
  deleteUser,
  endUserSessions,
  issuePasswordReset,
  removeSecondFactor,
  listAllWorkspaces,
  getWorkspace,
  workspaceUsage,
  changeAnyWorkspace,
  clearAllowlist,
  listPlans,
  listUpstreams,
  clearUpstream,
  overview,
  serviceUsage,
  errorsOverview,
  listAllGenerations,
  explainAnyGeneration,
  northStar,
  listIncidents,
  createIncident,
  updateIncident,
  deleteIncident,
  listConfiguration,
  exportConfiguration,
  putConfiguration,
  testConfiguration,
  deleteConfiguration,
  listSettings,
  reloadSettings,
  listSmokeTests,
  runSmokeTests,
  listReviews,
  approvePrompt,
  rejectPrompt,
];
