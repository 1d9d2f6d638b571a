import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { forOperators } from "./admin-fields.ts";

const settingSchema = z.object({
  key: z.string().describe("Its name in switchyard.yaml, where it has one."),
  value: z.string(),
  source: z.enum(["environment", "file", "default"]),
  variable: z
    .string()
    .nullable()
    .describe("The variable that it comes from, or that would set it."),
});

/** Shows the settings that are in force, and where each comes from. */
export const listSettings = defineEndpoint<Dependencies>({
  ...forOperators,
  method: "GET",
  path: "/admin/settings",
  summary: "Show the settings in force, and where each comes from (operators).",
  description:
    "As they were read at the start. Of secrets it is told whether they are set; addresses are shown without credentials.",
  response: z.object({
    object: z.literal("list"),
    version: z.string(),
    data: z.array(settingSchema),
  }),
  handle: (context, { operations }) =>
    context.json({
      object: "list",
      version: operations.version,
      data: operations.settings.map((setting) => ({ ...setting })),
    }),
});
