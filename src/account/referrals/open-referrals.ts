import type { Kysely } from "kysely";
import { UserStore } from "../people/user-store.ts";
import type { ReferralSettings } from "./referral-settings.ts";
import { ReferralStore, type ReferralTables } from "./referral-store.ts";
import { Referrals, type ReferralOptions } from "./referrals.ts";

/** Builds credits for bringing somebody and begins to give what is due; undefined where the operator gives none. */
export function openReferrals({
  settings,
  database,
  ...options
}: Omit<ReferralOptions, "settings" | "store" | "peopleIn"> & {
  settings: ReferralSettings | undefined;
  database: Kysely<ReferralTables>;
}): Referrals | undefined {
  if (settings === undefined) return undefined;
  const users = new UserStore(database.withTables());
  const referrals = new Referrals({
    ...options,
    settings,
    store: new ReferralStore(database),
    peopleIn: (workspaceId) => users.peopleIn(workspaceId),
  });
  referrals.start();
  return referrals;
}
