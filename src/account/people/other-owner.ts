import type { Transaction } from "kysely";
import type { PeopleTables } from "./people-tables.ts";

/** Whether somebody beside this member owns the organisation and may sign in. */
export async function hasOtherOwner(
  transaction: Transaction<PeopleTables>,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<boolean> {
  const other = await transaction
    .selectFrom("organization_members as member")
    .innerJoin("users as user", "user.id", "member.user_id")
    .select("user.id")
    .where("member.organization_id", "=", organizationId)
    .where("member.user_id", "!=", userId)
    .where("member.role", "=", "owner")
    .where("user.blocked_at_ms", "is", null)
    .executeTakeFirst();
  return other !== undefined;
}
