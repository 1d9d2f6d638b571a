import { z } from "zod";
import { defineTool } from "../tool.ts";

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
