/** A screen as the navigation, the palette and the keyboard know it. */
export interface Entry {
  to: string;
  label: string;
  /** The scope without which the session sees nothing there. */
  scope?: string;
  operator?: true;
  /** Leads there after `g`. */
  key?: string;
}

/** Every screen, in the order of the navigation. */
export const groups: readonly { title?: string; entries: readonly Entry[] }[] = [
  {
    entries: [
      { to: "/", label: "Overview", key: "o" },
      { to: "/playground", label: "Playground", scope: "inference", key: "p" },
    ],
  },
  {
    title: "Observe",
    entries: [
      { to: "/activity", label: "Activity", scope: "read:analytics", key: "a" },
      { to: "/usage", label: "Usage", scope: "read:analytics", key: "u" },
      { to: "/runs", label: "Runs", scope: "read:llm-keys" },
      { to: "/batches", label: "Batches", scope: "inference" },
      { to: "/customers", label: "Customers", scope: "read:llm-keys" },
    ],
  },
  {
    title: "Build",
    entries: [
      { to: "/models", label: "Models", key: "m" },
      { to: "/keys", label: "Keys", scope: "read:llm-keys", key: "k" },
      { to: "/presets", label: "Presets", scope: "read:presets" },
      { to: "/aliases", label: "Aliases", scope: "read:presets" },
      { to: "/files", label: "Files", scope: "inference" },
      { to: "/routing", label: "Routing", scope: "inference", key: "r" },
      { to: "/provider-keys", label: "Provider keys", scope: "read:byok" },
      { to: "/mcp-servers", label: "MCP servers", scope: "read:connections" },
      { to: "/hub", label: "Hub", scope: "read:hub", key: "h" },
      { to: "/connections", label: "Connected apps", scope: "read:connections" },
    ],
  },
  {
    title: "Organisation",
    entries: [
      { to: "/credits", label: "Credits", scope: "read:credits", key: "c" },
      { to: "/budgets", label: "Budgets", scope: "read:analytics", key: "b" },
      { to: "/members", label: "Members" },
      { to: "/teams", label: "Teams", scope: "read:llm-keys" },
      { to: "/security", label: "Security", scope: "read:security" },
      { to: "/account", label: "Your account" },
    ],
  },
  {
    title: "Installation",
    entries: [{ to: "/operator", label: "Operator", operator: true, key: "x" }],
  },
];

/** What the session is, as far as it decides what is shown. */
export interface Sight {
  scopes: readonly string[];
  operator: boolean;
}

const covers = (held: readonly string[], scope: string | undefined): boolean =>
  scope === undefined || held.includes(scope) || held.includes(scope.replace(/^read:/, "write:"));

/** Returns the screens that a person's scopes allow; the others are left out. */
export const visibleGroups = ({ scopes, operator }: Sight): typeof groups =>
  groups
    .map(({ entries, ...group }) => ({
      ...group,
      entries: entries.filter(
        (entry) => (entry.operator === undefined || operator) && covers(scopes, entry.scope),
      ),
    }))
    .filter(({ entries }) => entries.length > 0);
