import { z } from "zod";
import { defineTool } from "../tool.ts";

/** Lists conversations. */
export const listConversations = defineTool({
  name: "list_conversations",
  title: "List conversations",
  description:
    "Lists the conversations of the person that the credential acts for, the newest message first; with search, those that have " +
    "every word in their title or messages.",
  scope: "read:llm-keys",
  effect: "nothing",
  endpoint: "GET /conversations",
  input: z.object({
    starred: z.boolean().optional(),
    limit: z.int().min(1).max(100).default(50),
    search: z.string().optional(),
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
