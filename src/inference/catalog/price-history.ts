import type { Kysely } from "kysely";
import { minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import { routePricing } from "./model-object.ts";
import type { CatalogSnapshot } from "./model.ts";

/** The table of models' prices over time. */
export interface PriceTables {
  /** A provider's price of a model, from a time on. */
  price_changes: {
    model: string;
    provider: string;
    at_ms: number;
    /** JSON of the parts that have a price, in USD per million tokens. */
    prices: string;
  };
}

/** A provider's prices of a model, from a wall time on. */
export interface PriceChange {
  model: string;
  provider: string;
  atMs: number;
  prices: Readonly<Record<string, number>>;
}

/** Milliseconds between checks of whether the catalog has changed. */
const lookEveryMs = minuteMs;
/** Rows that one statement writes. */
const rowsAtOnce = 200;

const keyOf = ({ model, provider }: { model: string; provider: string }): string =>
  `${model} ${provider}`;

/**
 * Records when prices of the catalog changed: the prices of each route as they were first seen, and
 * every later change.
 */
export class PriceHistory {
  private readonly database: Kysely<PriceTables>;
  private readonly catalog: () => CatalogSnapshot;
  private readonly clock: Clock;
  private noted: { snapshot: CatalogSnapshot; done: Promise<void> } | undefined;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: {
    database: Kysely<PriceTables>;
    catalog: () => CatalogSnapshot;
    clock: Clock;
  }) {
    this.database = options.database;
    this.catalog = options.catalog;
    this.clock = options.clock;
  }

  /** Starts to check every minute. */
  start(onError: (error: unknown) => void): void {
    this.timer = setInterval(() => void this.look().catch(onError), lookEveryMs);
  }

  /** Stops; resolves when nothing is being written any more. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.noted?.done.catch(() => undefined);
  }

  /** Writes what changed since the last catalog that was checked; each catalog once. */
  look(): Promise<void> {
    const snapshot = this.catalog();
    if (this.noted?.snapshot === snapshot) return this.noted.done;
    const done = (this.noted?.done.catch(() => undefined) ?? Promise.resolve()).then(() =>
      this.note(snapshot),
    );
    const noted = { snapshot, done };
    this.noted = noted;
    done.catch(() => {
      if (this.noted === noted) this.noted = undefined;
    });
    return done;
  }

  /** Returns the prices of some models from their first ones on, each provider's oldest first. */
  async of(models: readonly string[]): Promise<PriceChange[]> {
    if (models.length === 0) return [];
    await this.look();
    const rows = await this.database
      .selectFrom("price_changes")
      .selectAll()
      .where("model", "in", [...models])
      .orderBy("model")
      .orderBy("provider")
      .orderBy("at_ms")
      .execute();
    // Two gateways may have seen the same change, each at its own time.
    return rows
      .filter((row, index) => {
        const before = rows[index - 1];
        return before === undefined || keyOf(before) !== keyOf(row) || before.prices !== row.prices;
      })
      .map(({ model, provider, at_ms: atMs, prices }) => ({
        model,
        provider,
        atMs: Number(atMs),
        prices: JSON.parse(prices) as Record<string, number>,
      }));
  }

  private async note(snapshot: CatalogSnapshot): Promise<void> {
    const known = new Map<string, string>();
    const rows = await this.database
      .selectFrom("price_changes")
      .select(["model", "provider", "prices"])
      .orderBy("at_ms")
      .execute();
    for (const row of rows) known.set(keyOf(row), row.prices);
    const changed = pricesOf(snapshot, this.clock.nowMs()).filter(
      (row) => known.get(keyOf(row)) !== row.prices,
    );
    for (let first = 0; first < changed.length; first += rowsAtOnce)
      await this.database
        .insertInto("price_changes")
        .values(changed.slice(first, first + rowsAtOnce))
        .onConflict((conflict) => conflict.doNothing())
        .execute();
  }
}

/** Returns the prices of every route of a catalog; routing presets have those of their members. */
function pricesOf({ models }: CatalogSnapshot, atMs: number): PriceTables["price_changes"][] {
  const rows = new Map<string, PriceTables["price_changes"]>();
  for (const { id, router, routes } of models.values()) {
    if (router !== undefined) continue;
    for (const { provider, price } of routes) {
      if (price === undefined) continue;
      const row = { model: id, provider: provider.id, at_ms: atMs };
      // Of two routes at one provider, the first one is shown.
      if (!rows.has(keyOf(row)))
        rows.set(keyOf(row), { ...row, prices: JSON.stringify(routePricing(price)) });
    }
  }
  return [...rows.values()];
}
