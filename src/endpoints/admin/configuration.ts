import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { withoutSecrets, withVariables } from "../../operator/entry-secrets.ts";
import { entrySections } from "../../operator/entry-store.ts";
import type { ListedEntry } from "../../operator/operator-entries.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { plainText } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { forOperators, operatorOf } from "./admin-fields.ts";

/** A provider with some hundred models has about 50 kB. */
const bodyBytesMax = 1024 * 1024;
const trialMs = 20_000;
const reasonLengthMax = 500;
const keylessReason =
  "Without an API key, only callers who bring their own reach it. A server that asks for none takes any text as its key.";

const sectionField = z.enum(entrySections, `must be one of ${entrySections.join(", ")}`);

const entrySchema = lazily(() =>
  z
    .object({
      object: z.literal("configuration_entry"),
      section: sectionField,
      id: z.string(),
      source: z
        .enum(["file", "page"])
        .describe("Where it is configured. The file takes precedence where it has the same id."),
      in_force: z.boolean(),
      problem: z.string().nullable().describe("Why it is not in force, beside the file."),
      value: z
        .record(z.string(), z.unknown())
        .describe("The entry as switchyard.yaml has it, without its id; secrets are ***."),
      updated_at: z.string().nullable(),
      updated_by: z.string().nullable(),
    })
    .meta({ id: "ConfigurationEntry" }),
);

const entryObject = (entry: ListedEntry): AnswerOf<typeof entrySchema> => ({
  object: "configuration_entry",
  section: entry.section,
  id: entry.id,
  source: entry.source,
  in_force: entry.inForce,
  problem: entry.problem,
  value: withoutSecrets(entry.value),
  updated_at: isoOrNull(entry.updatedAtMs),
  updated_by: entry.updatedBy,
});

export const listConfiguration = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/configuration",
  summary: "List configured providers, routers and aliases (operators).",
  description:
    "Returns the entries of switchyard.yaml and those that operators made here. An entry of the file takes precedence " +
    "over one with the same id. Secrets are shown as ***.",
  response: () => z.object({ object: z.literal("list"), data: z.array(entrySchema()) }),
  handle: (context, { entries }: Pick<Dependencies, "entries">) =>
    context.json({ object: "list", data: entries.list().map(entryObject) }),
});

const entryFields = {
  section: sectionField,
  id: plainText(200)
    .trim()
    .min(1, "is required")
    .describe("Id of the provider or router, or name of the alias."),
  value: z
    .record(z.string(), z.unknown(), "must be an object")
    .describe(
      "The entry as switchyard.yaml has it, without its id; of an alias {target}. A secret that is *** stays as it is " +
        "stored; a base_url at another host, or another proxy for plain HTTP, needs it again.",
    ),
};

const changeSchema = lazily(() =>
  z.object({
    models_added: z.array(z.string()),
    models_removed: z.array(z.string()),
    prices_changed: z.array(z.string()),
  }),
);

const changeObject = (change: {
  added: readonly string[];
  removed: readonly string[];
  repriced: readonly string[];
}): AnswerOf<typeof changeSchema> => ({
  models_added: [...change.added],
  models_removed: [...change.removed],
  prices_changed: [...change.repriced],
});

export const putConfiguration = defineEndpoint({
  ...forOperators,
  method: "POST",
  path: "/admin/configuration",
  bodyBytesMax,
  idempotent: true,
  summary: "Create or replace a provider, router or alias (operators).",
  description:
    "Checks the entry by the schema of switchyard.yaml, stores it encrypted, and applies it on every gateway without a " +
    "restart. Answers 409 if switchyard.yaml has the id. References to variables, ${NAME}, are for the file only.",
  body: z.strictObject(entryFields),
  response: () => entrySchema().extend({ change: changeSchema() }),
  async handle(context, deps: Pick<Dependencies, "operatorWorkspaceId" | "entries">) {
    const { section, id, value } = context.body;
    const change = await deps.entries.put({
      ...{ section, id, value },
      operatorId: operatorOf(context, deps),
    });
    context.changed = `${section}/${id}`;
    const stored = deps.entries
      .list()
      .find((entry) => entry.source === "page" && entry.section === section && entry.id === id);
    if (stored === undefined)
      throw new GatewayError("conflict", "The entry was deleted by another operator.");
    return context.json({ ...entryObject(stored), change: changeObject(change) });
  },
});

export const deleteConfiguration = defineEndpoint({
  ...forOperators,
  method: "DELETE",
  path: "/admin/configuration/:section/:id",
  summary: "Delete a provider, router or alias (operators).",
  description:
    "Deletes an entry that was made here; requests in progress keep their routes. An entry of switchyard.yaml is deleted " +
    "there, and answers 409. A slash in the id is written as %2F.",
  response: () => z.object({ deleted: z.literal(true), id: z.string(), change: changeSchema() }),
  async handle(context, { entries }: Pick<Dependencies, "entries">) {
    const section = sectionField.safeParse(context.param("section"));
    if (!section.success)
      throw new GatewayError(
        "not_found",
        `There is no such section; it is one of ${entrySections.join(", ")}.`,
      );
    const id = context.param("id");
    const change = await entries.remove({ section: section.data, id });
    context.changed = `${section.data}/${id}`;
    return context.json({ deleted: true, id, change: changeObject(change) });
  },
});

export const testConfiguration = defineEndpoint({
  ...forOperators,
  method: "POST",
  path: "/admin/configuration/test",
  idempotent: true,
  bodyBytesMax,
  summary: "Test a provider without storing it (operators).",
  description:
    "Sends the smallest request of chat to the cheapest model of the entry, which costs a fraction of a cent, and asks " +
    "for the provider's list of models. A secret that is *** is the stored one.",
  body: z.strictObject({ ...entryFields, section: z.literal("providers").default("providers") }),
  response: () =>
    z.object({
      object: z.literal("provider_test"),
      outcome: z.enum(["passed", "failed", "skipped"]),
      reason: z.string().nullable().describe("Why it failed or was skipped; null if it passed."),
      latency_ms: z.int().nullable(),
      models: z
        .array(z.string())
        .nullable()
        .describe("The provider's own names of its models; null if it lists none."),
    }),
  async handle(context, { entries, tryProvider }: Pick<Dependencies, "entries" | "tryProvider">) {
    const { providers } = await entries.check(context.body);
    const [provider] = providers;
    if (provider === undefined)
      throw new GatewayError("bad_request", "There is no provider in it.");
    const { chat, models } = await tryProvider(provider, AbortSignal.timeout(trialMs));
    const isKeyless = provider.api_key === undefined && chat.outcome === "skipped";
    return context.json({
      object: "provider_test",
      outcome: chat.outcome,
      reason: isKeyless
        ? keylessReason
        : chat.outcome === "passed"
          ? null
          : chat.message.slice(0, reasonLengthMax),
      latency_ms: chat.outcome === "passed" ? Math.round(chat.latencyMs) : null,
      models: models === null ? null : [...models],
    });
  },
});

export const exportConfiguration = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/configuration/export",
  summary: "Export what was configured here as YAML (operators).",
  description:
    "Returns a part of switchyard.yaml. Variables stand in place of secrets, such as ${ACME_API_KEY}.",
  response: () => z.string(),
  otherResponseTypes: ["application/yaml"],
  async handle(context, { entries }: Pick<Dependencies, "entries">) {
    const own = entries.list().filter(({ source }) => source === "page");
    const of = (section: ListedEntry["section"]) =>
      own.filter((entry) => entry.section === section);
    const { stringify } = await import("yaml");
    const text = stringify({
      providers: of("providers").map(({ id, value }) => ({ id, ...withVariables(id, value) })),
      routers: Object.fromEntries(of("routers").map(({ id, value }) => [id, value])),
      aliases: Object.fromEntries(of("aliases").map(({ id, value }) => [id, value["target"]])),
    });
    return new Response(text, {
      headers: {
        ...context.headers,
        "content-type": "application/yaml; charset=utf-8",
        "content-disposition": 'attachment; filename="switchyard-page.yaml"',
      },
    });
  },
});
