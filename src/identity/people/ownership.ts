import type { Transaction } from "kysely";
import type { PeopleTables } from "./people-tables.ts";

/** Returns whether another member owns the organisation and may sign in. */
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

/*
 * Both functions below write a row without changing it. The write locks the row on both engines, so
 * a second transaction, at any gateway, waits for the first and then reads what it left.
 */

/**
 * Serialises transactions that remove operators. Its row exists since the first account was
 * created.
 */
export async function operatorsOneAtATime(transaction: Transaction<PeopleTables>): Promise<void> {
  await transaction
    .updateTable("owner_claims")
    .set(({ ref }) => ({ id: ref("id") }))
    .where("id", "=", "owner")
    .execute();
}

/** Serialises transactions that change who owns an organisation. */
export async function ownersOneAtATime(
  transaction: Transaction<PeopleTables>,
  organizationId: string,
): Promise<void> {
  await transaction
    .updateTable("organizations")
    .set(({ ref }) => ({ name: ref("name") }))
    .where("id", "=", organizationId)
    .execute();
}
