import type { Transaction } from "kysely";
import type { PeopleTables } from "./people-tables.ts";

/*
 * Whoever writes a row first lets every other transaction that wants to wait, at whichever gateway and on both engines, and
 * what is read after that is as the one before has left it.
 */

/** Lets transactions that take operators away come one after the other. The row is there since the first account was made. */
export async function operatorsOneAtATime(transaction: Transaction<PeopleTables>): Promise<void> {
  await transaction
    .updateTable("owner_claims")
    .set(({ ref }) => ({ id: ref("id") }))
    .where("id", "=", "owner")
    .execute();
}

/** Lets transactions that change who owns an organisation come one after the other. */
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
