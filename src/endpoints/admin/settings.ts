import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { ConfigurationError } from "../../platform/config/configuration-error.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { forOperators } from "./admin-fields.ts";

const settingSchema = lazily(() =>
  z.object({
    key: z.string().describe("Name in switchyard.yaml, if the setting has one."),
    value: z.string(),
    source: z.enum(["environment", "file", "default"]),
    variable: z.string().nullable().describe("Environment variable that sets it, or would set it."),
  }),
);

export const listSettings = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/settings",
  summary: "Show the effective settings and their sources (operators).",
  description:
    "Returns the settings as read at start-up. Secrets show only whether they are set; addresses are shown without " +
    "credentials.",
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

export const reloadSettings = defineEndpoint({
  ...forOperators,
  method: "POST",
  path: "/admin/reload",
  idempotent: true,
  bodyOptional: true,
  summary: "Reload switchyard.yaml on every gateway (operators).",
  description:
    "Models, providers, routing presets and prices take effect immediately on this gateway, and within seconds on the " +
    "other gateways of the same database, as with SIGHUP. Other sections take effect at the next start; needs_restart " +
    "names those that changed. Answers 409, and changes nothing, if the configuration is invalid.",
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
