import { z } from "zod";
import { defineTool } from "../tool.ts";

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
