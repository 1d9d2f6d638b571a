import { z } from "zod";
import { conceptTypes, conceptsFor, conceptDocument } from "../okf/concepts.ts";
import { defineTool } from "../tool.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";

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
