import type { Endpoint } from "../access/define-endpoint.ts";
import { doors } from "./doors/index.ts";
import { listAuditLog } from "./security/audit.ts";
import {
  changeBudget,
  createBudget,
  deleteBudget,
  getBudget,
  listAlerts,
  listBudgetAlerts,
  listBudgets,
  rotateBudgetSecret,
  testBudgetAlert,
} from "./account/budgets.ts";
import {
  changeDonation,
  changeProviderKey,
  createProviderKey,
  deleteProviderKey,
  donateProviderKey,
  listProviderKeys,
  withdrawProviderKey,
} from "./account/byok.ts";
import { catalogEndpoints } from "./catalog/index.ts";
import { customerEndpoints } from "./customers/index.ts";
import { teamEndpoints } from "./teams/index.ts";
import { runEndpoints } from "./runs/index.ts";
import { credits, listCreditTransactions } from "./credits/credits.ts";
import { changeKey, createKey, deleteKey, getKey, listKeys, rotateKey } from "./keys/keys.ts";
import {
  createManagementKey,
  listManagementKeys,
  revokeManagementKey,
} from "./keys/management-keys.ts";
import {
  acceptInvitation,
  changeMember,
  changeOrganization,
  createOrganization,
  deleteOrganization,
  getOrganization,
  inviteMember,
  listInvitations,
  listMembers,
  listOrganizations,
  removeMember,
  revokeInvitation,
} from "./account/organization.ts";
import { getInvoice, listInvoices } from "./credits/invoices.ts";
import {
  createTopUp,
  getTopUp,
  listTopUps,
  quoteTopUp,
  stripeWebhook,
  topUpPage,
} from "./credits/top-ups.ts";
import { signInMethods, signUp } from "./session/sign-up.ts";
import {
  changePreset,
  createPreset,
  deletePreset,
  getPreset,
  listPresets,
  listPresetVersions,
  restorePresetVersion,
} from "./account/presets.ts";
import { changeAlias, createAlias, deleteAlias, getAlias, listAliases } from "./account/aliases.ts";
import { changePrivacy, getPrivacy } from "./security/privacy.ts";
import {
  changePassword,
  changePreferences,
  changeSession,
  getPreferences,
  getSession,
  listSessions,
  revokeOtherSessions,
  revokeSession,
} from "./session/session.ts";
import {
  createAuthorizationCode,
  createPlaygroundKey,
  exchangeAuthorizationCode,
} from "./consent/key-mint.ts";
import { testNewProviderKey, testProviderKey } from "./account/byok-tests.ts";
import { authKey, currentKey } from "./keys/current-key.ts";
import { createChildKey, createChildOfKey, deleteChildKey } from "./keys/child-keys.ts";
import {
  agreeToAutomaticTopUps,
  endAutomaticTopUps,
  getAutomaticTopUps,
} from "./credits/automatic-top-ups.ts";
import {
  requestPasswordReset,
  resetPassword,
  sendVerification,
  verifyEmail,
} from "./session/password-reset.ts";
import { acceptReferral, getReferrals } from "./account/referrals.ts";
import { addAllowedRange, listAllowedRanges, removeAllowedRange } from "./security/ip-allowlist.ts";
import { changeKeyPrivacy, listCredentials } from "./security/credentials.ts";
import {
  addPasskey,
  deletePasskey,
  listPasskeys,
  passkeyRegistrationOptions,
  passkeySignInOptions,
  signInWithPasskey,
} from "./session/passkeys.ts";
import {
  linkProvider,
  providerCallback,
  signInByPassword,
  signInWithProvider,
  signOut,
} from "./session/sign-in.ts";
import {
  beginTwoFactor,
  confirmTwoFactor,
  endTwoFactor,
  renewBackupCodes,
  signInWithCode,
} from "./session/two-factor.ts";
import {
  changeEmail,
  deleteAccount,
  listSignInMethods,
  unlinkSignInMethod,
} from "./session/own-account.ts";
import { changeWorkspace, listWorkspaces } from "./account/workspace.ts";
import { authPage, submitAuth } from "./consent/auth-page.ts";
import {
  endAnyConnection,
  endConnection,
  getConnection,
  listAllConnections,
  listConnections,
} from "./consent/connections.ts";
import { startAgentFlow, startDeviceFlow } from "./consent/device-code.ts";
import { devicePage, submitDevice } from "./consent/device-page.ts";
import { authorizePage, submitAuthorize } from "./consent/oauth-authorize.ts";
import {
  authorizationServerMetadata,
  authorizationServerMetadataBelow,
  openIdMetadata,
  protectedResourceMetadata,
  protectedResourceMetadataBelow,
  serverAuthorizationMetadata,
  serverResourceMetadata,
} from "./consent/oauth-metadata.ts";
import { registerOauthClient } from "./consent/oauth-register.ts";
import {
  mcpOauthToken,
  oauthToken,
  revokeMcpToken,
  revokeOauthToken,
} from "./consent/oauth-token.ts";
import type { Dependencies } from "./dependencies.ts";
import { documentsParse } from "./documents/documents-parse.ts";
import { ocrExtract } from "./documents/ocr-extract.ts";
import { chatCompletions } from "./inference/chat-completions.ts";
import {
  listInputItems,
  cancelStoredResponse,
  deleteStoredResponse,
  getStoredResponse,
} from "./inference/responses/stored-response.ts";
import { compactResponse } from "./inference/responses/compact-response.ts";
import { countResponseTokens } from "./inference/responses/input-tokens.ts";
import { countMessageTokens, messages } from "./inference/messages.ts";
import { decisions, systemOne } from "./inference/decisions.ts";
import { cohereEmbedPath, embeddings } from "./inference/embeddings.ts";
import { explainRouting } from "./inference/explain-routing.ts";
import { agentTelemetry, agentUsage, managedSettings } from "./inference/claude-code.ts";
import { mcpEndpoints } from "./mcp/index.ts";
import { moderations } from "./inference/moderations.ts";
import { cohereRerankPath, rerank } from "./inference/rerank.ts";
import { mediaEndpoints } from "./media/index.ts";
import { responses } from "./inference/responses/responses.ts";
import { realtimeEndpoints } from "./inference/sockets/realtime/index.ts";
import { responsesSocket } from "./inference/sockets/responses-socket.ts";
import { activityAnalytics, usageAnalytics } from "./insights/analytics.ts";
import { listActivity } from "./insights/activity.ts";
import { usageParts } from "./insights/usage-parts.ts";
import {
  errorAnalytics,
  generationAnalytics,
  generationHistogram,
  latencyAnalytics,
} from "./insights/generation-list.ts";
import { generationContent } from "./insights/generation-content.ts";
import { explainGeneration, generationById, generationByQuery } from "./insights/generation.ts";
import { health, healthHistory } from "./insights/health.ts";
import { networkStatistics } from "./insights/network.ts";
import { spendReport } from "./insights/spend-report.ts";
import { docs, docsFile, docsPage, llmsText, openApi } from "./ops/documentation.ts";
import { signInFailedPage } from "./pages/error-page.ts";
import { joinPage, submitAcceptance, submitJoin } from "./pages/join.ts";
import { claimPage, signUpPage, submitClaim, submitSignUp } from "./pages/new-account.ts";
import {
  forgotPasswordPage,
  resetPasswordPage,
  submitForgotPassword,
  submitPasswordReset,
  submitVerification,
  verifyEmailPage,
} from "./pages/recovery.ts";
import {
  catalogModelPageEndpoint,
  catalogPageEndpoint,
  statusFeedEndpoint,
  statusPageEndpoint,
} from "./pages/public.ts";
import {
  passkeyScriptFile,
  secondFactorPage,
  signInPage,
  signOutPage,
  submitProviderSignIn,
  submitSecondFactor,
  submitSignIn,
  submitSignOut,
} from "./pages/sign-in.ts";
import { dashboardAsset, dashboardFont, dashboardPages } from "./pages/dashboard.ts";
import { favicon, startPage } from "./pages/start-page.ts";
import { healthz, metrics, readyz } from "./ops/liveness.ts";
import { operatorEndpoints } from "./admin/index.ts";
import { batchEndpoints } from "./batches/index.ts";
import { fileEndpoints } from "./files/index.ts";
import { hubEndpoints } from "./hub/index.ts";

/** The whole API on one screen. Routes, guard, OpenAPI and docs are built from it. */
export const endpoints: readonly Endpoint<Dependencies>[] = [
  // Inference
  chatCompletions,
  messages,
  countMessageTokens,
  responses,
  responsesSocket,
  ...realtimeEndpoints,
  compactResponse,
  countResponseTokens,
  explainRouting,
  embeddings,
  ...doors,
  cohereEmbedPath,
  rerank,
  ...mediaEndpoints,
  cohereRerankPath,
  moderations,
  decisions,
  systemOne,
  ocrExtract,
  documentsParse,
  getStoredResponse,
  deleteStoredResponse,
  cancelStoredResponse,
  listInputItems,
  ...catalogEndpoints,
  // Pages
  startPage,
  favicon,
  passkeyScriptFile,
  signInPage,
  submitSignIn,
  secondFactorPage,
  submitSecondFactor,
  submitProviderSignIn,
  signOutPage,
  submitSignOut,
  claimPage,
  submitClaim,
  joinPage,
  submitJoin,
  submitAcceptance,
  signUpPage,
  submitSignUp,
  forgotPasswordPage,
  submitForgotPassword,
  resetPasswordPage,
  submitPasswordReset,
  verifyEmailPage,
  submitVerification,
  signInFailedPage,
  ...dashboardPages,
  dashboardAsset,
  dashboardFont,
  statusPageEndpoint,
  statusFeedEndpoint,
  catalogPageEndpoint,
  catalogModelPageEndpoint,
  devicePage,
  submitDevice,
  authPage,
  submitAuth,
  authorizePage,
  submitAuthorize,
  // People
  signInMethods,
  signUp,
  signInByPassword,
  signInWithCode,
  beginTwoFactor,
  confirmTwoFactor,
  renewBackupCodes,
  endTwoFactor,
  signInWithProvider,
  providerCallback,
  linkProvider,
  signOut,
  passkeySignInOptions,
  signInWithPasskey,
  passkeyRegistrationOptions,
  addPasskey,
  listPasskeys,
  requestPasswordReset,
  resetPassword,
  sendVerification,
  verifyEmail,
  listSignInMethods,
  unlinkSignInMethod,
  deleteAccount,
  changeEmail,
  deletePasskey,
  changePassword,
  getSession,
  changeSession,
  getPreferences,
  changePreferences,
  listSessions,
  revokeSession,
  revokeOtherSessions,
  listWorkspaces,
  changeWorkspace,
  createOrganization,
  listOrganizations,
  getOrganization,
  changeOrganization,
  deleteOrganization,
  listMembers,
  changeMember,
  removeMember,
  inviteMember,
  listInvitations,
  revokeInvitation,
  acceptInvitation,
  // Files
  ...fileEndpoints,
  ...batchEndpoints,
  // Account
  createKey,
  listKeys,
  getKey,
  changeKey,
  deleteKey,
  rotateKey,
  authKey,
  currentKey,
  createChildKey,
  createChildOfKey,
  deleteChildKey,
  credits,
  listCreditTransactions,
  getReferrals,
  acceptReferral,
  createManagementKey,
  listManagementKeys,
  revokeManagementKey,
  createPreset,
  listPresets,
  getPreset,
  changePreset,
  deletePreset,
  listPresetVersions,
  restorePresetVersion,
  createAlias,
  listAliases,
  getAlias,
  changeAlias,
  deleteAlias,
  createProviderKey,
  testNewProviderKey,
  testProviderKey,
  listProviderKeys,
  changeProviderKey,
  deleteProviderKey,
  donateProviderKey,
  changeDonation,
  withdrawProviderKey,
  // Consent
  createAuthorizationCode,
  exchangeAuthorizationCode,
  startDeviceFlow,
  startAgentFlow,
  managedSettings,
  agentUsage,
  ...agentTelemetry,
  oauthToken,
  mcpOauthToken,
  revokeOauthToken,
  revokeMcpToken,
  registerOauthClient,
  authorizationServerMetadata,
  ...authorizationServerMetadataBelow,
  openIdMetadata,
  protectedResourceMetadata,
  ...protectedResourceMetadataBelow,
  ...serverResourceMetadata,
  ...serverAuthorizationMetadata,
  createPlaygroundKey,
  listConnections,
  getConnection,
  endConnection,
  listAllConnections,
  endAnyConnection,
  // Tools for agents, and hubs
  ...mcpEndpoints,
  ...hubEndpoints,
  // Runs
  ...runEndpoints,
  ...customerEndpoints,
  ...teamEndpoints,
  // Payments
  quoteTopUp,
  createTopUp,
  listTopUps,
  getTopUp,
  topUpPage,
  getAutomaticTopUps,
  agreeToAutomaticTopUps,
  endAutomaticTopUps,
  listInvoices,
  getInvoice,
  stripeWebhook,
  createBudget,
  listBudgets,
  getBudget,
  changeBudget,
  deleteBudget,
  rotateBudgetSecret,
  testBudgetAlert,
  listBudgetAlerts,
  listAlerts,
  // Security
  listCredentials,
  changeKeyPrivacy,
  listAllowedRanges,
  addAllowedRange,
  removeAllowedRange,
  getPrivacy,
  changePrivacy,
  listAuditLog,
  // Operators
  ...operatorEndpoints,
  // Insights
  generationById,
  generationByQuery,
  generationContent,
  explainGeneration,
  spendReport,
  health,
  healthHistory,
  networkStatistics,
  usageAnalytics,
  usageParts,
  activityAnalytics,
  listActivity,
  generationAnalytics,
  generationHistogram,
  errorAnalytics,
  latencyAnalytics,
  // Operations
  openApi,
  docs,
  docsFile,
  docsPage,
  llmsText,
  healthz,
  readyz,
  metrics,
];
