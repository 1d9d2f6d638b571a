import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { ConfigurationError } from "../../platform/config/configuration-error.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { forOperators } from "./admin-fields.ts";

const settingSchema = lazily(() =>
  z.object({
    key: z.string().describe("Its name in switchyard.yaml, where it has one."),
    value: z.string(),
    source: z.enum(["environment", "file", "default"]),
    variable: z
      .string()
      .nullable()
      .describe("The variable that it comes from, or that would set it."),
  }),
);

/** Shows the settings in force, and where each comes from. */
export const listSettings = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/settings",
  summary: "Show the settings in force, and where each comes from (operators).",
  description:
    "As they were read at the start. Secrets show only whether they are set, addresses are shown without credentials.",
  response: () =>
    z.object({
      object: z.literal("list"),
      version: z.string(),
      data: z.array(settingSchema()),
    }),
  handle: (context, { operations }: Pick<Dependencies, "operations">) =>
    context.json({
      object: "list",
      version: operations.version,
      data: operations.settings.map((setting) => ({ ...setting })),
    }),
});

/** Reloads the configuration of every gateway. */
export const reloadSettings = defineEndpoint({
  ...forOperators,
  method: "POST",
  path: "/admin/reload",
  idempotent: true,
  bodyOptional: true,
  summary: "Read switchyard.yaml again, at every gateway (operators).",
  description:
    "Models, providers, routing presets and prices come into force at once, here and within seconds at the other gateways on " +
    "the database, as with SIGHUP; other sections with the next start, and needs_restart names those that were changed. 409 " +
    "where the configuration cannot be used, and then nothing changes.",
  response: () =>
    z.object({
      object: z.literal("reload"),
      configuration: z.string(),
      added: z.array(z.string()),
      removed: z.array(z.string()),
      repriced: z.array(z.string()),
      needs_restart: z.array(z.string()),
      nodes: z.int(),
    }),
  async handle(context, { operations }: Pick<Dependencies, "operations">) {
    try {
      const { change, needsRestart, configuration } = await operations.nodes.reload();
      return context.json({
        object: "reload",
        configuration,
        added: [...change.added],
        removed: [...change.removed],
        repriced: [...change.repriced],
        needs_restart: [...needsRestart],
        nodes: (await operations.nodes.list()).length,
      });
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      throw new GatewayError(
        "conflict",
        `The configuration cannot be used, and nothing was changed: ${error.message}`,
      );
    }
  },
});
