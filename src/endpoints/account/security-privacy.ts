import type { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Dependencies } from "../dependencies.ts";
import { workspaceOf } from "./account-caller.ts";
import { accountBodyBytesMax } from "./account-fields.ts";
import {
  privacyChanges,
  privacyChangesSchema,
  privacyObject,
  privacySchema,
} from "./privacy-fields.ts";

const shared = {
  path: "/security/privacy",
  base: "api",
  counting: "at-door",
  tag: "Security",
  encodeError: encodeContractError,
} as const;

/** Shows what the workspace demands of every provider. */
export const getPrivacy = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  access: { managementScope: "read:security", session: true },
  summary: "Show the privacy settings of the workspace.",
  response: privacySchema,
  handle: (context, { security }) =>
    context.json(privacyObject(security.privacy.of(workspaceOf(context).id))),
});

/** Changes what the workspace demands of every provider; the very next request is routed by it. */
export const changePrivacy = defineEndpoint<Dependencies, z.infer<typeof privacyChangesSchema>>({
  ...shared,
  method: "PATCH",
  access: { managementScope: "write:security", session: true },
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change the privacy settings of the workspace.",
  description:
    "zdr leaves only providers that keep nothing (zero data retention); blocked_providers never serve. " +
    "Keys, presets and requests can demand more, and never less.",
  body: privacyChangesSchema,
  response: privacySchema,
  async handle(context, deps) {
    const workspaceId = workspaceOf(context).id;
    const privacy = await deps.security.privacyEditor.change(
      { workspaceId, ownerId: workspaceId },
      privacyChanges(deps, context.body),
    );
    context.changed = workspaceId;
    return context.json(privacyObject(privacy));
  },
});
