import { z } from "zod";

const text = (description: string) => z.string().describe(description).optional();

/** The query of `GET /models` as OpenAPI describes it; `parseModelListQuery` reads it. */
export const modelListQuerySchema = z.object({
  all: text(
    "1, true or yes: also models that the caller cannot reach; of no effect without a key.",
  ),
  include: text("unavailable or all: the same as all=1."),
  provider: text("A provider's id or name, or the owner of models."),
  category: z.enum(["text", "image", "audio", "embedding"]).optional(),
  min_context: z.int().describe("Context tokens at least.").optional(),
  capability: z
    .array(z.string())
    .optional()
    .describe(
      "May be repeated; every one counts. function_calling and function-calling are the same.",
    ),
  supported: text("The older form of capability, with commas."),
  privacy: text("0 or false: also models of providers that the caller blocks."),
  presets: text("0 or false: without the presets array."),
  sort: z
    .enum([
      "added",
      "newest",
      "new",
      "created",
      "usage",
      "top",
      "top-usage",
      "popular",
      "name",
      "id",
    ])
    .describe(
      "added: the newest first. usage: by the requests of the last seven days. name: by id.",
    )
    .optional(),
  limit: z
    .int()
    .min(1)
    .describe("Models that the answer has at most; all unless it is sent.")
    .optional(),
  offset: z.int().min(0).describe("Models that are passed over.").optional(),
});
