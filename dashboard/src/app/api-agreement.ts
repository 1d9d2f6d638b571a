import type {
  Content,
  Explanation,
  Failures,
  GenerationDetails,
  Histogram,
} from "../features/activity/api.ts";
import type { Generation } from "../features/activity/latest.ts";
import type { Credits, ReferralProgram } from "../features/credits/api.ts";
import type { Entry, Hub, Version } from "../features/hub/api.ts";
import type { Key } from "../features/keys/api.ts";
import type { McpConnection, McpServer, ToolCall } from "../features/mcp-servers/api.ts";
import type { Model } from "../features/models/api.ts";
import type {
  Errors,
  Overview,
  Person,
  Plan,
  Setting,
  Upstream,
  Workspace as OperatorsWorkspace,
} from "../features/operator/api.ts";
import type { Health } from "../features/overview/api.ts";
import type { Conversation } from "../features/playground/api.ts";
import type { Privacy } from "../features/security/api.ts";
import type { UsagePart, UsageRow } from "../features/usage/api.ts";
import type { Answers } from "../lib/api-types.ts";
import type { Session, Workspace } from "../lib/session.ts";

/**
 * What a screen reads of an answer, where the answer has all of it; otherwise this file does not
 * compile.
 */
type Read<Answer extends Shown, Shown> = Pick<Answer, Extract<keyof Answer, keyof Shown>>;

type RowOf<Answer extends { data: readonly unknown[] }> = Answer["data"][number];

/**
 * Each type that a screen has of an answer, against the answer that the API declares. A change of
 * the API ends here, not in a browser.
 */
export interface ApiAgreement {
  session: Read<Answers["GET /session"], Session>;
  workspace: Read<RowOf<Answers["GET /workspaces"]>, Workspace>;
  model: Read<RowOf<Answers["GET /models"]>, Model>;
  key: Read<RowOf<Answers["GET /keys"]>, Key>;
  credits: Read<Answers["GET /credits"], Credits>;
  referrals: Read<Answers["GET /referrals"], ReferralProgram>;
  generation: Read<RowOf<Answers["GET /analytics/generations"]>, Generation>;
  histogram: Read<Answers["GET /analytics/generations/histogram"], Histogram>;
  failures: Read<Answers["GET /analytics/errors"], Failures>;
  usage: Read<
    RowOf<Answers["GET /analytics/usage"]>,
    Pick<UsageRow, "bucket" | "requests" | "errors" | "tokens" | "cost">
  >;
  usagePart: Read<RowOf<Answers["GET /analytics/usage/parts"]>, UsagePart>;
  explanation: Read<Answers["GET /generation/{id}/explain"], Omit<Explanation, "generation">>;
  generationDetails: Read<Answers["GET /generation/{id}/explain"]["generation"], GenerationDetails>;
  content: Read<Answers["GET /generation/content"]["data"], Content>;
  privacy: Read<Answers["GET /security/privacy"], Privacy>;
  mcpServer: Read<RowOf<Answers["GET /mcp-servers"]>, McpServer>;
  mcpConnection: Read<RowOf<Answers["GET /mcp-servers/{id}/connections"]>, McpConnection>;
  toolCall: Read<RowOf<Answers["GET /analytics/generations"]>, ToolCall>;
  health: Read<Answers["GET /health"], Pick<Health, "status">>;
  conversation: Read<RowOf<Answers["GET /conversations"]>, Conversation>;
  prompt: Read<RowOf<Answers["GET /prompts"]>, Omit<Entry, "workspace_id">>;
  skill: Read<
    RowOf<Answers["GET /skills"]>,
    Omit<Entry, "workspace_id" | "title" | "status" | "category">
  >;
  hub: Read<RowOf<Answers["GET /hubs"]>, Hub>;
  hubItem: Read<
    RowOf<Answers["GET /hubs/{slug}/items"]>,
    Omit<Entry, "workspace_id" | "title" | "name" | "status" | "category">
  >;
  entryVersion: Read<RowOf<Answers["GET /hubs/{slug}/items/{item}/versions"]>, Version>;
  overview: Read<Answers["GET /admin/overview"], Overview>;
  operatorsWorkspace: Read<RowOf<Answers["GET /admin/workspaces"]>, OperatorsWorkspace>;
  person: Read<RowOf<Answers["GET /admin/users"]>, Person>;
  plan: Read<RowOf<Answers["GET /admin/plans"]>, Plan>;
  upstream: Read<RowOf<Answers["GET /admin/upstreams"]>, Upstream>;
  errors: Read<Answers["GET /admin/errors"], Errors>;
  setting: Read<RowOf<Answers["GET /admin/settings"]>, Setting>;
}
