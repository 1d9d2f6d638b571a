import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Privacy } from "../../identity/workspaces/privacy.ts";
import { badField } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, plainText, workspaceOf } from "../account/account-fields.ts";

/** The public form of what a workspace or a key requires of providers. */
export const privacySchema = lazily(() =>
  z
    .object({ zdr: z.boolean(), blocked_providers: z.array(z.string()) })
    .meta({ id: "PrivacySettings" }),
);

/** The public form of a workspace's own. */
const workspacePrivacySchema = lazily(() =>
  z
    .object({
      zdr: z.boolean(),
      blocked_providers: z.array(z.string()),
      keep_contents: z.boolean(),
      content_days: z.number(),
    })
    .meta({ id: "WorkspacePrivacySettings" }),
);

/** Changes to the settings. Absent fields stay as they are. */
export const privacyChangesSchema = z.strictObject({
  zdr: z.boolean("must be true or false").optional(),
  blocked_providers: z
    .array(plainText(200), "must be a list of provider ids")
    .max(1_000)
    .optional(),
});

/** Returns the settings of a workspace or a key, as they are shown. */
export const privacyObject = ({
  zdr,
  blockedProviders,
}: Privacy): AnswerOf<typeof privacySchema> => ({
  zdr,
  blocked_providers: [...blockedProviders],
});

/**
 * Converts changes to stored form, in which providers are named by id. A misspelt name is refused,
 * since it would block no provider. Throws `bad_request`.
 */
export function privacyChanges(
  { inference }: Pick<Dependencies, "inference">,
  body: z.infer<typeof privacyChangesSchema>,
): Partial<Privacy> {
  const names = body.blocked_providers;
  const zdr = body.zdr === undefined ? {} : { zdr: body.zdr };
  if (names === undefined) return zdr;
  const idByName = new Map(
    [...inference.catalog().providers.values()].flatMap(({ id, name }) => [
      [name.toLowerCase(), id],
      [id.toLowerCase(), id],
    ]),
  );
  const ids = names.map((name, index) => {
    const id = idByName.get(name.trim().toLowerCase());
    if (id !== undefined) return id;
    const param = `blocked_providers[${index}]`;
    throw badField(param, `there is no provider ${name}. GET /providers lists them.`);
  });
  return { ...zdr, blockedProviders: [...new Set(ids)].sort() };
}

const workspacePrivacyChangesSchema = privacyChangesSchema.extend({
  keep_contents: z.boolean("must be true or false").optional(),
});

/** Returns a workspace's requirements, and whether its prompts and answers are kept. */
const workspacePrivacyObject = (
  privacy: Privacy,
  { insights }: Pick<Dependencies, "insights">,
): AnswerOf<typeof workspacePrivacySchema> => ({
  ...privacyObject(privacy),
  keep_contents: privacy.contentsSinceMs !== undefined,
  content_days: insights.contents.keepDays,
});

/** The declarations that routes of security share. */
export const forSecurity = {
  base: "api",
  counting: "at-door",
  tag: "Security",
  encodeError: encodeContractError,
} as const;
const shared = { ...forSecurity, path: "/security/privacy" } as const;

export const getPrivacy = defineEndpoint({
  ...shared,
  method: "GET",
  access: { managementScope: "read:security", session: true },
  summary: "Show the privacy settings of the workspace.",
  response: workspacePrivacySchema,
  handle: (context, deps: Pick<Dependencies, "security" | "insights">) =>
    context.json(workspacePrivacyObject(deps.security.privacy.of(workspaceOf(context).id), deps)),
});

/** Changes what the workspace requires of every provider, in force for the very next request. */
export const changePrivacy = defineEndpoint({
  ...shared,
  method: "PATCH",
  access: { managementScope: "write:security", session: true },
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change the privacy settings of the workspace.",
  description:
    "zdr allows only providers that retain nothing (zero data retention). blocked_providers never receive requests. Keys, presets " +
    "and requests can demand more privacy, never less. keep_contents stores prompts and answers of new requests, encrypted, for the " +
    "number of days that the operator configured (GET /generation/content), except under zero data retention; false deletes what is " +
    "stored.",
  body: workspacePrivacyChangesSchema,
  response: workspacePrivacySchema,
  async handle(context, deps: Pick<Dependencies, "inference" | "insights" | "security">) {
    const workspaceId = workspaceOf(context).id;
    const { keep_contents: keepsContents } = context.body;
    const privacy = await deps.security.privacyEditor.change(
      { workspaceId, ownerId: workspaceId },
      { ...privacyChanges(deps, context.body), keepsContents },
    );
    if (privacy.contentsSinceMs === undefined) deps.insights.contents.eraseSoon();
    context.changed = workspaceId;
    return context.json(workspacePrivacyObject(privacy, deps));
  },
});
