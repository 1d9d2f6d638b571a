import { z } from "zod";
import type { Organization } from "../../account/people/organizations.ts";
import type { SessionRecord } from "../../account/people/session-store.ts";
import type { SignInWays, UserRecord } from "../../account/people/user-store.ts";
import { isoOrNull } from "../../platform/lib/clock.ts";
import { organizationObject, organizationObjectSchema } from "../account/people-object.ts";

/** A user as operators see one. */
export const adminUserSchema = z
  .object({
    id: z.string(),
    object: z.literal("user"),
    name: z.string(),
    email: z.string(),
    operator: z.boolean(),
    blocked: z.boolean(),
    blocked_at: z.string().nullable(),
    created_at: z.string(),
    last_signed_in_at: z.string().nullable(),
    workspace_id: z.string().nullable(),
  })
  .meta({ id: "AdminUser" });

/** The record of a user. */
export const adminUser = (user: UserRecord): z.infer<typeof adminUserSchema> => ({
  id: user.id,
  object: "user",
  name: user.name,
  email: user.email,
  operator: user.operator,
  blocked: user.blockedAtMs !== null,
  blocked_at: isoOrNull(user.blockedAtMs),
  created_at: new Date(user.createdAtMs).toISOString(),
  last_signed_in_at: isoOrNull(user.lastSignedInAtMs),
  workspace_id: user.workspaceId,
});

/** A user with the ways to sign in, the sessions and the organisations. */
export const adminUserDetailsSchema = adminUserSchema.extend({
  sign_in: z.object({ password: z.boolean(), passkeys: z.int(), providers: z.array(z.string()) }),
  sessions: z.array(
    z.object({
      id: z.string(),
      created_at: z.string(),
      updated_at: z.string(),
      expires_at: z.string(),
      address: z.string().nullable(),
      user_agent: z.string().nullable(),
    }),
  ),
  organizations: z.array(organizationObjectSchema),
});

/** The record with everything about a user. */
export const adminUserDetails = (
  user: UserRecord,
  {
    ways,
    sessions,
    organizations,
  }: {
    ways: SignInWays;
    sessions: readonly SessionRecord[];
    organizations: readonly Organization[];
  },
): z.infer<typeof adminUserDetailsSchema> => ({
  ...adminUser(user),
  sign_in: ways,
  sessions: sessions.map((session) => ({
    id: session.id,
    created_at: session.createdAt,
    updated_at: session.updatedAt,
    expires_at: session.expiresAt,
    address: session.address || null,
    user_agent: session.userAgent || null,
  })),
  organizations: organizations.map(organizationObject),
});
