import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const starPrompt = defineTool({
  name: "star_prompt",
  title: "Star a prompt",
  description: "Stars a prompt for the person of the credential. Repeating the call has no effect.",
  scope: "write:hub",
  effect: "adds",
  endpoint: "POST /prompts/:id/star",
  input: z.object({ prompt_id: z.string().describe("Id of the prompt.") }),
  run: ({ prompt_id: id }, { ask }) => ask({ endpoint: "POST /prompts/:id/star", params: { id } }),
});
