import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { type PreferenceTables, preferencesMax } from "./people-tables.ts";

/** Values by name; null removes one. */
type PreferenceChanges = Readonly<Record<string, unknown>>;

/**
 * A person's preferences in their clients: theme, time zone, dismissed messages. The service does
 * not read them.
 */
export class Preferences {
  constructor(private readonly options: { database: Kysely<PreferenceTables>; clock: Clock }) {}

  async of(userId: string): Promise<Record<string, unknown>> {
    const rows = await this.options.database
      .selectFrom("user_preferences")
      .select(["name", "value"])
      .where("user_id", "=", userId)
      .orderBy("name")
      .execute();
    return Object.fromEntries(rows.map(({ name, value }) => [name, JSON.parse(value) as unknown]));
  }

  /** Sets the named preferences. Throws `bad_request` where there would be too many. */
  async change(userId: string, changes: PreferenceChanges): Promise<Record<string, unknown>> {
    const { database, clock } = this.options;
    const gone = Object.keys(changes).filter((name) => changes[name] === null);
    const set = Object.entries(changes).filter(([, value]) => value !== null);
    await database.transaction().execute(async (transaction) => {
      if (gone.length > 0) {
        await transaction
          .deleteFrom("user_preferences")
          .where("user_id", "=", userId)
          .where("name", "in", gone)
          .execute();
      }
      if (set.length > 0) {
        const rows = set.map(([name, value]) => ({
          user_id: userId,
          name,
          value: JSON.stringify(value),
          updated_at_ms: clock.nowMs(),
        }));
        await transaction
          .insertInto("user_preferences")
          .values(rows)
          .onConflict((conflict) =>
            conflict.columns(["user_id", "name"]).doUpdateSet((row) => ({
              value: row.ref("excluded.value"),
              updated_at_ms: row.ref("excluded.updated_at_ms"),
            })),
          )
          .execute();
      }
      const { count } = await transaction
        .selectFrom("user_preferences")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("user_id", "=", userId)
        .executeTakeFirstOrThrow();
      if (Number(count) <= preferencesMax) return;
      throw new GatewayError(
        "bad_request",
        `There may be ${preferencesMax} preferences at most. Set some to null first.`,
      );
    });
    return this.of(userId);
  }
}
