import { z } from "zod";
import { creatorIdOf, type AccountCaller } from "../../account/keys/caller.ts";
import { versionsMax } from "../../account/presets/preset-store.ts";
import type { PresetReference } from "../../account/presets/preset-editor.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax } from "./account-fields.ts";
import {
  newPresetSchema,
  presetChangesSchema,
  readNewPreset,
  readPresetChanges,
} from "./preset-body.ts";
import {
  presetObject,
  presetObjectSchema,
  presetVersionObject,
  presetVersionSchema,
} from "./preset-object.ts";

const shared = {
  base: "api",
  counting: "at-door",
  tag: "Presets",
  encodeError: encodeContractError,
} as const;
const reads = { managementScope: "read:presets", session: true } as const;
const writes = { managementScope: "write:presets", session: true } as const;

const workspaceIdOf = (context: RequestContext<unknown>): string =>
  (context.caller as AccountCaller).workspace.id;

const authorOf = (context: RequestContext<unknown>): string =>
  creatorIdOf(context.caller as AccountCaller);

const referenceOf = (context: RequestContext<unknown>): PresetReference => ({
  workspaceId: workspaceIdOf(context),
  slug: context.param("slug"),
});

/** The body as it came: presets have error codes of their own for what is missing. */
const asItCame = {
  bodyBytesMax: accountBodyBytesMax,
  body: z.record(z.string(), z.unknown()),
} as const;

type PresetBody = Readonly<Record<string, unknown>>;

/** Creates a preset. */
export const createPreset = defineEndpoint<Dependencies, PresetBody>({
  ...shared,
  method: "POST",
  idempotent: true,
  path: "/presets",
  access: writes,
  summary: "Create a preset.",
  description:
    'Requests use it as model: "@preset/<slug>", and what they set themselves wins. Unknown fields of config are left out.',
  ...asItCame,
  rawBody: newPresetSchema,
  response: presetObjectSchema,
  async handle(context, deps) {
    const wanted = readNewPreset(context.body);
    const preset = await deps.presetEditor.create(
      { workspaceId: workspaceIdOf(context), ...wanted },
      authorOf(context),
    );
    context.changed = preset.slug;
    return context.json(presetObject(preset, deps));
  },
});

/** Lists the presets of the workspace, newest first. */
export const listPresets = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/presets",
  access: reads,
  summary: "List presets.",
  response: z.object({ object: z.literal("list"), data: z.array(presetObjectSchema) }),
  handle: (context, deps) =>
    context.json({
      object: "list",
      data: deps.presets
        .presetsOf(workspaceIdOf(context))
        .map((preset) => presetObject(preset, deps)),
    }),
});

/** Shows one preset. */
export const getPreset = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/presets/:slug",
  access: reads,
  summary: "Show one preset.",
  response: presetObjectSchema,
  handle: (context, deps) =>
    context.json(presetObject(deps.presetEditor.find(referenceOf(context)), deps)),
});

/** Changes some fields of a preset; the very next request that names it meets them. */
export const changePreset = defineEndpoint<Dependencies, PresetBody>({
  ...shared,
  method: "PATCH",
  path: "/presets/:slug",
  access: writes,
  summary: "Change a preset.",
  ...asItCame,
  rawBody: presetChangesSchema,
  response: presetObjectSchema,
  async handle(context, deps) {
    const reference = referenceOf(context);
    deps.presetEditor.find(reference);
    const changes = readPresetChanges(context.body, reference.slug);
    return context.json(
      presetObject(await deps.presetEditor.change(reference, changes, authorOf(context)), deps),
    );
  },
});

/** Deletes a preset; its slug is free again. */
export const deletePreset = defineEndpoint<Dependencies>({
  ...shared,
  method: "DELETE",
  path: "/presets/:slug",
  access: writes,
  summary: "Delete a preset.",
  response: z.object({ deleted: z.literal(true), slug: z.string() }),
  async handle(context, { presetEditor }) {
    const reference = referenceOf(context);
    await presetEditor.remove(reference);
    return context.json({ deleted: true, slug: reference.slug });
  },
});

/** Lists the versions of a preset. */
export const listPresetVersions = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/presets/:slug/versions",
  access: reads,
  summary: "List the versions of a preset.",
  description: `The newest ${versionsMax}, the newest first. Each change of a preset makes one.`,
  response: z.object({ object: z.literal("list"), data: z.array(presetVersionSchema) }),
  async handle(context, { presetEditor }) {
    return context.json({
      object: "list",
      data: (await presetEditor.versions(referenceOf(context))).map(presetVersionObject),
    });
  },
});

/** Restores a version of a preset. */
export const restorePresetVersion = defineEndpoint<Dependencies>({
  ...shared,
  method: "POST",
  idempotent: true,
  path: "/presets/:slug/versions/:version/restore",
  access: writes,
  summary: "Restore a version of a preset.",
  description:
    "Name, description and configuration become those of the version again, as the next version.",
  response: presetObjectSchema,
  async handle(context, deps) {
    const reference = referenceOf(context);
    const version = Number(context.param("version"));
    context.changed = reference.slug;
    return context.json(
      presetObject(await deps.presetEditor.restore(reference, version, authorOf(context)), deps),
    );
  },
});
