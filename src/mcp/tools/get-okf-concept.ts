import { z } from "zod";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { conceptDocument, conceptsFor } from "../okf/concepts.ts";
import { defineTool } from "../tool.ts";

export const getOkfConcept = defineTool({
  name: "get_okf_concept",
  title: "Read a concept",
  description: "Reads a document that list_okf_concepts lists, as Markdown with YAML front matter.",
  scope: null,
  effect: "nothing",
  output: z.looseObject({
    id: z.string(),
    type: z.string(),
    title: z.string(),
    description: z.string(),
    document: z.string(),
  }),
  input: z.object({
    id: z
      .string("is required")
      .min(1, "is required")
      .max(300)
      .describe("Id of the concept, such as error/insufficient_balance."),
  }),
  async run({ id }, context) {
    const concept = (await conceptsFor(context)).find((each) => each.id === id);
    if (concept === undefined) {
      throw new GatewayError(
        "not_found",
        "id: there is no such concept. list_okf_concepts lists them.",
        { param: "id" },
      );
    }
    const { type, title, description } = concept;
    return { id, type, title, description, document: conceptDocument(concept) };
  },
});
