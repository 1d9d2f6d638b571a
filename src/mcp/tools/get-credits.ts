import { z } from "zod";
import { defineTool } from "../tool.ts";

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
