import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { checkAddress } from "../../access/allowlist/ip-allowlist.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { planIds, type Workspace } from "../../identity/workspaces/workspace-store.ts";
import { usdSixDecimals } from "../../platform/kernel/money.ts";
import { accountBodyBytesMax } from "../account/account-fields.ts";
import { shownBalances } from "../credits/credits.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  forOperators,
  pageFields,
  pageObject,
  pageSchema,
  searchField,
  truthField,
} from "./admin-fields.ts";

/** A workspace as operators see one. */
const adminWorkspaceSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("workspace"),
      name: z.string(),
      plan: z.enum(planIds),
      blocked: z.boolean(),
      owner_user_id: z.string().nullable(),
      owner_email: z.string().nullable(),
      organization_id: z.string().nullable(),
      created_at: z.string(),
      balance: z.number(),
      monthly_balance: z.number(),
      topup_balance: z.number(),
      used: z.number(),
    })
    .meta({ id: "AdminWorkspace" }),
);

/** Returns the e-mail addresses of the owners of personal workspaces, by their user ids. */
const ownersOf = (
  workspaces: readonly Workspace[],
  { people }: Pick<Dependencies, "people">,
): Promise<ReadonlyMap<string, string>> =>
  people.users.emailsOf(workspaces.flatMap(({ ownerUserId }) => ownerUserId ?? []));

/** Returns the record of a workspace with its balances. */
async function adminWorkspace(
  workspace: Workspace,
  { ledger, owners }: Pick<Dependencies, "ledger"> & { owners: ReadonlyMap<string, string> },
): Promise<AnswerOf<typeof adminWorkspaceSchema>> {
  await ledger.refresh(workspace.id);
  const account = ledger.book.workspace(workspace.id);
  return {
    id: workspace.id,
    object: "workspace",
    name: workspace.name,
    plan: workspace.plan,
    blocked: workspace.blocked === true,
    owner_user_id: workspace.ownerUserId ?? null,
    owner_email: owners.get(workspace.ownerUserId ?? "") ?? null,
    organization_id: workspace.organizationId ?? null,
    created_at: new Date(workspace.createdAtMs).toISOString(),
    ...shownBalances(account),
    used: usdSixDecimals(account.usedNano),
  };
}

const planField = z.enum(planIds, `must be one of ${planIds.join(", ")}`);

const querySchema = z.object({
  ...pageFields,
  search: searchField,
  plan: planField.optional(),
  blocked: truthField,
});

const fits =
  (
    { search, plan, blocked }: z.infer<typeof querySchema>,
    owners: ReadonlySet<string | undefined>,
  ) =>
  (workspace: Workspace): boolean =>
    (plan === undefined || workspace.plan === plan) &&
    (blocked === undefined || (workspace.blocked === true) === blocked) &&
    (search === undefined ||
      workspace.id === search ||
      workspace.name.toLowerCase().includes(search.toLowerCase()) ||
      owners.has(workspace.ownerUserId));

const newestFirst = (one: Workspace, other: Workspace): number =>
  other.createdAtMs - one.createdAtMs || (one.id < other.id ? 1 : -1);

/** The most owners whose workspaces a search finds. */
const ownersMax = 1_000;

/** Returns the users whose name or e-mail address has a text; none for no text. */
async function ownersNamed(
  search: string | undefined,
  { people }: Pick<Dependencies, "people">,
): Promise<ReadonlySet<string | undefined>> {
  if (search === undefined) return new Set();
  const { users } = await people.users.list({ search, limit: ownersMax, offset: 0 });
  return new Set(users.map(({ id }) => id));
}

export const listAllWorkspaces = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/workspaces",
  summary: "List workspaces with their balances (operators).",
  description:
    "Newest first. search matches part of a name, an id, or part of the owner's name or e-mail address.",
  query: querySchema,
  response: () => pageSchema(adminWorkspaceSchema()),
  async handle(context, deps: Pick<Dependencies, "ledger" | "directory" | "people">) {
    const query = checkBody(querySchema, Object.fromEntries(context.query));
    const owners = await ownersNamed(query.search, deps);
    const found = deps.directory.allWorkspaces().filter(fits(query, owners)).sort(newestFirst);
    const listed = found.slice(query.offset, query.offset + query.limit);
    const parts = { ledger: deps.ledger, owners: await ownersOf(listed, deps) };
    const page = await Promise.all(listed.map((workspace) => adminWorkspace(workspace, parts)));
    return context.json(pageObject(page, { total: found.length, offset: query.offset }));
  },
});

/** Shows one workspace with the number of its keys and members. */
export const getWorkspace = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/workspaces/:id",
  summary: "Show a workspace (operators).",
  response: () =>
    adminWorkspaceSchema().extend({
      members: z.int(),
      llm_keys: z.int(),
      management_keys: z.int(),
    }),
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "ledger" | "llmKeys" | "managementKeys" | "people" | "workspaceEditor" | "clock"
    >,
  ) {
    const workspace = deps.workspaceEditor.find(context.param("id"));
    const { id, organizationId } = workspace;
    const [owners, members, llmKeys, managementKeys] = await Promise.all([
      ownersOf([workspace], deps),
      deps.people.users.membersByOrganization(),
      deps.llmKeys.list(id, { includeDisabled: true }),
      deps.managementKeys.list(id, { includeInvalid: false, nowMs: deps.clock.nowMs() }),
    ]);
    return context.json({
      ...(await adminWorkspace(workspace, { ledger: deps.ledger, owners })),
      llm_keys: llmKeys.length,
      management_keys: managementKeys.length,
      members:
        organizationId === undefined
          ? Number(workspace.ownerUserId !== undefined)
          : (members.get(organizationId) ?? 0),
    });
  },
});

const changeSchema = z.strictObject({
  plan: planField
    .optional()
    .describe(
      "Plan of the workspace. Takes effect with the next request; the plan's credits begin next month.",
    ),
  blocked: z
    .boolean("must be true or false")
    .optional()
    .describe("Whether every credential of an organisation's workspace is blocked."),
});

export const changeAnyWorkspace = defineEndpoint({
  ...forOperators,
  method: "PATCH",
  path: "/admin/workspaces/:id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Assign a plan or block an organisation's workspace (operators).",
  description: "To block a personal workspace, block its owner.",
  body: changeSchema,
  response: adminWorkspaceSchema,
  async handle(context, deps: Pick<Dependencies, "ledger" | "workspaceEditor" | "people">) {
    const workspace = await deps.workspaceEditor.change(context.param("id"), context.body);
    context.changedIn = workspace.id;
    const owners = await ownersOf([workspace], deps);
    return context.json(await adminWorkspace(workspace, { ledger: deps.ledger, owners }));
  },
});

export const clearAllowlist = defineEndpoint({
  ...forOperators,
  method: "DELETE",
  path: "/admin/workspaces/:id/ip-allowlist",
  anywhere: true,
  summary: "Clear a workspace's IP allowlist (operators).",
  description:
    "For people who locked themselves out. Signed-in operators can do this from any address, even for their own " +
    "workspace.",
  response: () =>
    z.object({ deleted: z.literal(true), id: z.string(), removed: z.array(z.string()) }),
  async handle(
    context,
    { security, workspaceEditor }: Pick<Dependencies, "security" | "workspaceEditor">,
  ) {
    // A leaked key must not clear the list that blocks the person who found it.
    if (context.caller.kind !== "session") checkAddress(security.allowlist, context);
    const { id } = workspaceEditor.find(context.param("id"));
    context.changedIn = id;
    const removed = await security.allowlistEditor.clear(id);
    return context.json({ deleted: true, id, removed: removed.map(({ cidr }) => cidr) });
  },
});
