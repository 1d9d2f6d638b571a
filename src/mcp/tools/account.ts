import { z } from "zod";
import { dayMs } from "../../platform/kernel/clock.ts";
import { defineTool } from "../tool.ts";

const lineSchema = z.looseObject({
  requests: z.number(),
  errors: z.number(),
  tokens: z.number(),
  cost: z.number(),
});
const answerSchema = z.looseObject({
  data: z.array(lineSchema.extend({ model: z.string().optional() })),
});

type Line = z.infer<typeof lineSchema>;

const sum = (lines: readonly Line[], of: (line: Line) => number): number =>
  lines.reduce((total, line) => total + of(line), 0);

const totalsOf = (lines: readonly Line[]) => ({
  requests: sum(lines, ({ requests }) => requests),
  errors: sum(lines, ({ errors }) => errors),
  tokens: sum(lines, ({ tokens }) => tokens),
  // The sums are binary fractions, so they are rounded to the nano-dollar, the unit of counting.
  cost: Math.round(sum(lines, ({ cost }) => cost) * 1e9) / 1e9,
});

const totalsSchema = z.looseObject({
  requests: z.int(),
  errors: z.int(),
  tokens: z.int(),
  cost: z.number(),
});

export const getUsage = defineTool({
  name: "get_usage",
  title: "Show usage",
  description:
    "Shows the requests, errors, tokens and cost in USD of the workspace over the last days, by day (`data`) and by model " +
    "(`models`, highest cost first), with totals.",
  scope: "read:analytics",
  effect: "nothing",
  endpoint: "GET /analytics/usage",
  output: z.looseObject({
    object: z.literal("list"),
    from: z.string(),
    to: z.string(),
    interval: z.string(),
    data: z.array(totalsSchema.extend({ bucket: z.string() })),
    models: z.array(totalsSchema.extend({ model: z.string() })),
    totals: totalsSchema,
  }),
  input: z.object({
    days: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(90, "must be at most 90")
      .default(7)
      .describe("Number of days, 1 to 90."),
  }),
  async run({ days }, { ask, nowMs }) {
    const query = { from: new Date(nowMs() - days * dayMs).toISOString(), interval: "day" };
    const [byDay, byModel] = await Promise.all([
      ask({ endpoint: "GET /analytics/usage", query }),
      ask({ endpoint: "GET /analytics/usage", query: { ...query, group_by: "model" } }),
    ]);
    const daily = answerSchema.parse(byDay);
    const models = Map.groupBy(answerSchema.parse(byModel).data, ({ model }) => model ?? "");
    return {
      ...daily,
      models: [...models]
        .map(([model, lines]) => ({ model, ...totalsOf(lines) }))
        .sort((one, other) => other.cost - one.cost),
      totals: totalsOf(daily.data),
    };
  },
});

export const getCredits = defineTool({
  name: "get_credits",
  title: "Show credits",
  description:
    "Shows the workspace's balance in USD: monthly credits, top-ups, total spend and today's spend.",
  scope: "read:credits",
  effect: "nothing",
  endpoint: "GET /credits",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /credits" }),
});

export const listPresets = defineTool({
  name: "list_presets",
  title: "List presets",
  description:
    'Lists the workspace\'s presets, newest first. A request uses one with model "@preset/<slug>".',
  scope: "read:presets",
  effect: "nothing",
  endpoint: "GET /presets",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /presets" }),
});

export const listAliases = defineTool({
  name: "list_aliases",
  title: "List aliases",
  description:
    "Lists the workspace's own names of models, newest first, with the models that each may mean. A request sends one as `model`.",
  scope: "read:presets",
  effect: "nothing",
  endpoint: "GET /aliases",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /aliases" }),
});

export const getAlias = defineTool({
  name: "get_alias",
  title: "Show an alias",
  description:
    "Shows a name of the workspace's own: the models that it means, with their shares, fallbacks and conditions.",
  scope: "read:presets",
  effect: "nothing",
  endpoint: "GET /aliases/:name",
  input: z.object({ name: z.string().describe("The name, from list_aliases.") }),
  run: ({ name }, { ask }) => ask({ endpoint: "GET /aliases/:name", params: { name } }),
});

export const getRun = defineTool({
  name: "get_run",
  title: "Show a run",
  description:
    "Shows what is left of a run, in USD and requests, with its status and the runs in it. With the key of a run, id may be left " +
    "out: it is then that run.",
  scope: null,
  effect: "nothing",
  endpoint: "GET /runs/:id",
  input: z.object({
    id: z.string().default("self").describe("Id of the run. Default: the run whose key asks."),
  }),
  run: ({ id }, { ask }) => ask({ endpoint: "GET /runs/:id", params: { id } }),
});

export const listCustomers = defineTool({
  name: "list_customers",
  title: "List customers",
  description:
    "Lists the end customers of the workspace, newest first: the plan of each, what is left of it, and what it used in its period, " +
    "with cost, price and margin in USD.",
  scope: "read:llm-keys",
  effect: "nothing",
  endpoint: "GET /customers",
  input: z.object({
    limit: z.int().min(1).max(200).default(50).describe("Most customers. Default: 50."),
    cursor: z.string().optional().describe("The `next_cursor` of the page before."),
  }),
  run: ({ limit, cursor }, { ask }) =>
    ask({ endpoint: "GET /customers", query: { limit, cursor } }),
});

export const getCustomer = defineTool({
  name: "get_customer",
  title: "Show a customer",
  description: "Shows an end customer: its plan, what is left, and what it used in its period.",
  scope: "read:llm-keys",
  effect: "nothing",
  endpoint: "GET /customers/:id",
  input: z.object({ id: z.string().describe("Its id, or the external_id that requests name.") }),
  run: ({ id }, { ask }) => ask({ endpoint: "GET /customers/:id", params: { id } }),
});

export const listTeams = defineTool({
  name: "list_teams",
  title: "List teams",
  description:
    "Lists the teams of the workspace, newest first: the limit of each, what its keys spent in its period and what is left, in USD, and " +
    "the models that they may use.",
  scope: "read:llm-keys",
  effect: "nothing",
  endpoint: "GET /teams",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /teams" }),
});

export const getTeam = defineTool({
  name: "get_team",
  title: "Show a team",
  description: "Shows a team: its limit, what its keys spent in its period, and what is left.",
  scope: "read:llm-keys",
  effect: "nothing",
  endpoint: "GET /teams/:id",
  input: z.object({ id: z.string().describe("Its id or its name.") }),
  run: ({ id }, { ask }) => ask({ endpoint: "GET /teams/:id", params: { id } }),
});

export const getSystemStatus = defineTool({
  name: "get_system_status",
  title: "Show system status",
  description:
    "Shows the health of the service: its API, providers, routing and background jobs, and the latest status changes.",
  scope: null,
  effect: "nothing",
  endpoint: "GET /health",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /health" }),
});

export const listConversations = defineTool({
  name: "list_conversations",
  title: "List conversations",
  description:
    "Lists the conversations of the person of the credential, most recent message first. With search, lists those with every word " +
    "in their title or messages.",
  scope: "read:llm-keys",
  effect: "nothing",
  endpoint: "GET /conversations",
  input: z.object({
    starred: z
      .boolean()
      .optional()
      .describe("true: only starred conversations. false: only others. Default: all."),
    limit: z
      .int()
      .min(1)
      .max(100)
      .default(50)
      .describe("Maximum number of conversations, 1 to 100."),
    search: z
      .string()
      .optional()
      .describe("Search words; each must match the beginning of a word."),
  }),
  run: ({ starred, limit, search }, { ask }) =>
    ask({
      endpoint: "GET /conversations",
      query: {
        limit,
        ...(starred === undefined ? {} : { starred }),
        ...(search ? { search } : {}),
      },
    }),
});
