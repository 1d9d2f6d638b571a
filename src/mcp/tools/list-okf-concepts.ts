import { z } from "zod";
import { conceptTypes, conceptsFor } from "../okf/concepts.ts";
import { defineTool } from "../tool.ts";

export const listOkfConcepts = defineTool({
  name: "list_okf_concepts",
  title: "List concepts",
  description:
    "Lists documents (Open Knowledge Format) about this service's models, providers, endpoints, errors and terms.",
  scope: null,
  effect: "nothing",
  output: z.looseObject({
    object: z.literal("list"),
    total: z.int(),
    data: z.array(
      z.looseObject({
        id: z.string(),
        type: z.string(),
        title: z.string(),
        description: z.string(),
      }),
    ),
  }),
  input: z.object({
    type: z
      .enum(conceptTypes, `must be one of ${conceptTypes.join(", ")}`)
      .optional()
      .describe("Type of the documents. Default: all types."),
    search: z
      .string()
      .max(200)
      .optional()
      .describe("Words to find in the documents, ignoring case."),
    limit: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(1_000, "must be at most 1000")
      .default(200)
      .describe("Maximum number of documents, 1 to 1000."),
  }),
  async run({ type, search = "", limit }, context) {
    const words = search
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "");
    const found = (await conceptsFor(context)).filter((concept) => {
      if (type !== undefined && concept.type !== type) return false;
      const text =
        `${concept.id} ${concept.title} ${concept.description} ${concept.body}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const data = found
      .slice(0, limit)
      .map(({ id, type: kind, title, description }) => ({ id, type: kind, title, description }));
    return { object: "list", data, total: found.length };
  },
});
