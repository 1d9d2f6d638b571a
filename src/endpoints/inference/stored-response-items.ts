import { z } from "zod";
import { checkBody } from "../../http/check-body.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { pageOfItems } from "../../inference/stored-responses/input-items.ts";
import type { Dependencies } from "../dependencies.ts";
import { responseNotFound, workspaceOf } from "./stored-response-object.ts";

const limitProblem = "must be a number from 1 to 100";

const itemsQuerySchema = z.object({
  order: z.enum(["asc", "desc"], "must be asc or desc").default("desc"),
  limit: z.coerce
    .number(limitProblem)
    .int(limitProblem)
    .min(1, limitProblem)
    .max(100, limitProblem)
    .default(20),
  after: z.string().optional(),
  include: z
    .string()
    .optional()
    .describe(
      "Accepted for OpenAI's clients (also as include[]); items are listed with everything that was sent.",
    ),
});

/** The input items of a stored response, page by page; those of responses before it are theirs. */
export const listInputItems = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/responses/:id/input_items",
  base: "api",
  access: { llmKey: true },
  counting: "at-door",
  summary: "List the input items of a stored response.",
  tag: "Inference",
  query: itemsQuerySchema,
  response: z.object({
    object: z.literal("list"),
    data: z.array(z.looseObject({ id: z.string(), type: z.string() })),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  }),
  encodeError: encodeContractError,
  async handle(context, { responses }) {
    const { order, limit, after } = checkBody(itemsQuerySchema, Object.fromEntries(context.query));
    const id = context.param("id");
    const items = await responses.inputItems(workspaceOf(context), id);
    if (items === undefined) throw responseNotFound(id);
    return context.json(pageOfItems(items, { responseId: id, query: { order, limit, after } }));
  },
});
