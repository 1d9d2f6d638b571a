import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";

export const hubImportSkill = defineTool({
  name: "hub_import_skill",
  title: "Import a skill",
  description:
    "Copies a skill into a hub of the workspace, from a public URL or from another hub of this service.",
  scope: "write:hub",
  effect: "adds",
  endpoint: "POST /hubs/:slug/import",
  input: z.object({
    hub: z.string().describe("Slug of the hub to import into."),
    source_ref: z
      .string()
      .describe(
        "The https URL of a SKILL.md, of a public Git repository or of a folder in one (https://host/path.git#ref:folder), or " +
          "<hub>/<item> of a hub of this service.",
      ),
    ...idempotencyField,
  }),
  run: ({ hub: slug, idempotency_key: idempotencyKey, ...body }, { ask }) =>
    ask({ endpoint: "POST /hubs/:slug/import", params: { slug }, body, idempotencyKey }),
});
