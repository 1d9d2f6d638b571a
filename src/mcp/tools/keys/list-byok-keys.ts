import { z } from "zod";
import { defineTool } from "../../tool.ts";

const answerSchema = z.looseObject({
  data: z.array(z.looseObject({ keys: z.array(z.looseObject({ enabled: z.boolean() })) })),
});

export const listByokKeys = defineTool({
  name: "list_byok_keys",
  title: "List provider keys",
  description:
    "Lists the workspace's own provider keys, masked, grouped by provider. The provider bills the requests that they serve; they " +
    "cost nothing here.",
  scope: "read:byok",
  effect: "nothing",
  endpoint: "GET /auth/byok",
  input: z.object({
    enabled_only: z.boolean().default(false).describe("Whether to omit disabled keys."),
  }),
  async run({ enabled_only: enabledOnly }, { ask }) {
    const answer = await ask({ endpoint: "GET /auth/byok" });
    if (!enabledOnly) return answer;
    const { data, ...rest } = answerSchema.parse(answer);
    const groups = data.map(({ keys, ...group }) => ({
      ...group,
      keys: keys.filter(({ enabled }) => enabled),
    }));
    return { ...rest, data: groups.filter(({ keys }) => keys.length > 0) };
  },
});
