import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from "@tanstack/react-router";
import { Skeleton } from "../ui/loaded.tsx";
import { OverviewPage } from "../features/overview/overview-page.tsx";
import { Shell } from "./shell.tsx";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => <p>There is no such page. Choose one from the navigation.</p>,
});

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

const filterNames = [
  "model",
  "provider",
  "status",
  "key_id",
  "workspace_id",
  "error",
  "app",
  "session_id",
  "preset_id",
  "batch_id",
  "range",
  "from",
  "to",
  "days",
  "id",
  "item",
  "group",
  "figure",
  "second",
  "limit",
  "sum",
  "tag",
  "sort",
  "q",
] as const;

/** What a page is narrowed to. */
type Filters = Partial<Record<(typeof filterNames)[number], string | undefined>>;

/** Filters live in the address, so that a link shows what its sender saw. */
const filtersOf = (search: Record<string, unknown>): Filters =>
  Object.fromEntries(
    filterNames.flatMap((name) =>
      text(search[name]) === undefined ? [] : [[name, text(search[name])]],
    ),
  );

const overview = createRoute({ getParentRoute: () => root, path: "/", component: OverviewPage });
const playground = createRoute({
  getParentRoute: () => root,
  path: "/playground",
  validateSearch: filtersOf,
  component: lazyRouteComponent(
    () => import("../features/playground/playground-page.tsx"),
    "PlaygroundPage",
  ),
});
const activity = createRoute({
  getParentRoute: () => root,
  path: "/activity",
  validateSearch: filtersOf,
  component: lazyRouteComponent(
    () => import("../features/activity/activity-page.tsx"),
    "ActivityPage",
  ),
});
const usage = createRoute({
  getParentRoute: () => root,
  path: "/usage",
  validateSearch: filtersOf,
  component: lazyRouteComponent(() => import("../features/usage/usage-page.tsx"), "UsagePage"),
});
const models = createRoute({
  getParentRoute: () => root,
  path: "/models",
  validateSearch: filtersOf,
  component: lazyRouteComponent(() => import("../features/models/models-page.tsx"), "ModelsPage"),
});
const model = createRoute({
  getParentRoute: () => root,
  path: "/models/$owner/$model",
  component: lazyRouteComponent(() => import("../features/models/model-page.tsx"), "ModelPage"),
});
const keys = createRoute({
  getParentRoute: () => root,
  path: "/keys",
  component: lazyRouteComponent(() => import("../features/keys/keys-page.tsx"), "KeysPage"),
});
const connections = createRoute({
  getParentRoute: () => root,
  path: "/connections",
  component: lazyRouteComponent(
    () => import("../features/connections/connections-page.tsx"),
    "ConnectionsPage",
  ),
});
const credits = createRoute({
  getParentRoute: () => root,
  path: "/credits",
  component: lazyRouteComponent(
    () => import("../features/credits/credits-page.tsx"),
    "CreditsPage",
  ),
});
const members = createRoute({
  getParentRoute: () => root,
  path: "/members",
  component: lazyRouteComponent(
    () => import("../features/members/members-page.tsx"),
    "MembersPage",
  ),
});
const account = createRoute({
  getParentRoute: () => root,
  path: "/account",
  component: lazyRouteComponent(
    () => import("../features/account/account-page.tsx"),
    "AccountPage",
  ),
});

const presets = createRoute({
  getParentRoute: () => root,
  path: "/presets",
  component: lazyRouteComponent(
    () => import("../features/presets/presets-page.tsx"),
    "PresetsPage",
  ),
});
const preset = createRoute({
  getParentRoute: () => root,
  path: "/presets/$slug",
  component: lazyRouteComponent(() => import("../features/presets/preset-page.tsx"), "PresetPage"),
});
const aliases = createRoute({
  getParentRoute: () => root,
  path: "/aliases",
  component: lazyRouteComponent(
    () => import("../features/aliases/aliases-page.tsx"),
    "AliasesPage",
  ),
});
const providerKeys = createRoute({
  getParentRoute: () => root,
  path: "/provider-keys",
  component: lazyRouteComponent(
    () => import("../features/provider-keys/provider-keys-page.tsx"),
    "ProviderKeysPage",
  ),
});
const mcpServers = createRoute({
  getParentRoute: () => root,
  path: "/mcp-servers",
  validateSearch: filtersOf,
  component: lazyRouteComponent(
    () => import("../features/mcp-servers/mcp-servers-page.tsx"),
    "McpServersPage",
  ),
});
const routing = createRoute({
  getParentRoute: () => root,
  path: "/routing",
  component: lazyRouteComponent(
    () => import("../features/routing/routing-page.tsx"),
    "RoutingPage",
  ),
});
const budgets = createRoute({
  getParentRoute: () => root,
  path: "/budgets",
  component: lazyRouteComponent(
    () => import("../features/budgets/budgets-page.tsx"),
    "BudgetsPage",
  ),
});
const batches = createRoute({
  getParentRoute: () => root,
  path: "/batches",
  component: lazyRouteComponent(
    () => import("../features/batches/batches-page.tsx"),
    "BatchesPage",
  ),
});
const batch = createRoute({
  getParentRoute: () => root,
  path: "/batches/$id",
  component: lazyRouteComponent(() => import("../features/batches/batch-page.tsx"), "BatchPage"),
});
const files = createRoute({
  getParentRoute: () => root,
  path: "/files",
  component: lazyRouteComponent(() => import("../features/files/files-page.tsx"), "FilesPage"),
});
const runs = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  component: lazyRouteComponent(() => import("../features/runs/runs-page.tsx"), "RunsPage"),
});
const run = createRoute({
  getParentRoute: () => root,
  path: "/runs/$id",
  component: lazyRouteComponent(() => import("../features/runs/run-page.tsx"), "RunPage"),
});
const customers = createRoute({
  getParentRoute: () => root,
  path: "/customers",
  component: lazyRouteComponent(
    () => import("../features/customers/customers-page.tsx"),
    "CustomersPage",
  ),
});
const customer = createRoute({
  getParentRoute: () => root,
  path: "/customers/$id",
  component: lazyRouteComponent(
    () => import("../features/customers/customer-page.tsx"),
    "CustomerPage",
  ),
});
const teams = createRoute({
  getParentRoute: () => root,
  path: "/teams",
  component: lazyRouteComponent(() => import("../features/teams/teams-page.tsx"), "TeamsPage"),
});
const team = createRoute({
  getParentRoute: () => root,
  path: "/teams/$id",
  component: lazyRouteComponent(() => import("../features/teams/team-page.tsx"), "TeamPage"),
});
const security = createRoute({
  getParentRoute: () => root,
  path: "/security",
  component: lazyRouteComponent(
    () => import("../features/security/security-page.tsx"),
    "SecurityPage",
  ),
});
const hub = createRoute({
  getParentRoute: () => root,
  path: "/hub",
  validateSearch: filtersOf,
  component: lazyRouteComponent(() => import("../features/hub/hub-page.tsx"), "HubPage"),
});
const operator = createRoute({
  getParentRoute: () => root,
  path: "/operator",
  validateSearch: filtersOf,
  component: lazyRouteComponent(
    () => import("../features/operator/operator-page.tsx"),
    "OperatorPage",
  ),
});

/** Every page of the dashboard on one screen. */
export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    playground,
    activity,
    usage,
    models,
    model,
    keys,
    connections,
    credits,
    members,
    account,
    presets,
    preset,
    aliases,
    providerKeys,
    mcpServers,
    routing,
    budgets,
    batches,
    batch,
    files,
    runs,
    run,
    customers,
    teams,
    team,
    customer,
    security,
    hub,
    operator,
  ]),
  defaultPendingComponent: () => <Skeleton height={320} />,
  defaultPreload: "intent",
  basepath: "/dashboard",
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
