import { readFileSync, statSync } from "node:fs";
import { z } from "zod";
import { picoPerTokenFromUsdPerMillion } from "../../platform/kernel/money.ts";
import { surfaces } from "../providers/provider-definition.ts";

/** USD per million tokens as decimal text, exact to the millionth of a dollar. */
const usdPerMillion = z
  .string()
  .refine(
    (text) => (picoPerTokenFromUsdPerMillion(text) ?? -1n) >= 0n,
    "must be a decimal number that is not negative",
  );

const factPricesSchema = z.lazy(() =>
  z.strictObject({
    input: usdPerMillion,
    output: usdPerMillion,
    cache_read: usdPerMillion.optional(),
    cache_write: usdPerMillion.optional(),
    cache_write_1h: usdPerMillion.optional(),
    reasoning: usdPerMillion.optional(),
    input_audio: usdPerMillion.optional(),
    output_audio: usdPerMillion.optional(),
    audio_cache_read: usdPerMillion.optional(),
    image_input: usdPerMillion.optional(),
    image_output: usdPerMillion.optional(),
    image_cache_read: usdPerMillion.optional(),
    /** USD per million requests, in addition to the tokens. */
    request: usdPerMillion.optional(),
  }),
);

/** Prices of pictures in USD by size and quality, of a minute of sound, and of a million characters. */
const factMediaSchema = z.lazy(() =>
  z.strictObject({
    pictures: z.record(z.string(), z.record(z.string(), usdPerMillion)).optional(),
    audio_input_minute: usdPerMillion.optional(),
    audio_output_minute: usdPerMillion.optional(),
    characters: usdPerMillion.optional(),
    /** Milliseconds of sound that every request is billed for at least. */
    minimum_ms: z.int().positive().optional(),
  }),
);

/** A factor of the ordinary token prices as decimal text, or prices of their own. */
const factLevelSchema = z.lazy(() => z.union([usdPerMillion, factPricesSchema]));
const factLevels = z.lazy(() => z.record(z.string(), factLevelSchema).optional());

const factRowSchema = z.lazy(() =>
  z.strictObject({
    id: z.string().regex(/^[^/\s]+\/\S+$/),
    provider: z.string(),
    upstream: z.string(),
    name: z.string(),
    surface: z.enum(surfaces),
    /** Tokens; absent where the source names none. */
    context: z.int().positive().optional(),
    max_output: z.int().positive().optional(),
    quantization: z.string().optional(),
    prices: factPricesSchema.optional(),
    /** Prices of pictures and sound, beside those of tokens. */
    media: factMediaSchema.optional(),
    /** Prices of the whole request above a total input, largest first. */
    tiers: z
      .array(z.strictObject({ above: z.int().positive(), prices: factPricesSchema }))
      .optional(),
    /** Prices at other levels, by the value of the request field that asks for them. */
    service_tier: factLevels,
    speed: factLevels,
    inference_geo: factLevels,
    /** USD per call of the provider's tools; `web_search` per search. */
    tools: z.record(z.string(), usdPerMillion).optional(),
    /** Whether a request's searches are charged together, once. */
    searches_once: z.literal(true).optional(),
    capabilities: z.array(z.string()),
    parameters: z.array(z.string()).optional(),
    /** Effort levels in ascending order. */
    efforts: z.array(z.string()).min(1).optional(),
    released: z.string().optional(),
  }),
);

/** The project's own format of facts about models: one row for each model at a provider. */
export const catalogFactsSchema = z.lazy(() =>
  z.strictObject({
    source: z.string(),
    licence: z.string(),
    /** The date of the source, `YYYY-MM-DD`, which is the version of every price in it. */
    snapshot: z.iso.date(),
    units: z.string(),
    /** Other spellings of catalog ids that vendors use. */
    aliases: z.record(z.string(), z.string()),
    /** Sorted by id, then provider. */
    rows: z.array(factRowSchema),
  }),
);

/** The facts in a file or a source of the catalog. */
export type CatalogFacts = z.infer<typeof catalogFactsSchema>;
/** A model at one provider, as the facts have it. */
export type FactRow = z.infer<typeof factRowSchema>;
/** The prices of pictures and sound of such a row, in USD. */
export type FactMedia = z.infer<typeof factMediaSchema>;
/** The prices of such a row, in USD per million tokens. */
export type FactPrices = z.infer<typeof factPricesSchema>;

/**
 * Returns the text of a facts file: one row per line, so that a refresh shows as a readable change,
 * and equal facts always yield equal text.
 */
export function factsText(facts: CatalogFacts): string {
  const { rows, aliases, ...header } = facts;
  const sortedAliases = Object.entries(aliases).sort(([left], [right]) => compareText(left, right));
  const aliasLines = sortedAliases.map(
    ([alias, id]) => `${JSON.stringify(alias)}:${JSON.stringify(id)}`,
  );
  const head = JSON.stringify(header).slice(0, -1);
  return `${head},\n"aliases":{\n${aliasLines.join(",\n")}\n},\n"rows":[\n${rows
    .map((row) => JSON.stringify(row))
    .join(",\n")}\n]}\n`;
}

/** Compares by code units, which is the same on every machine, unlike a locale's order. */
export const compareText = (left: string, right: string): number =>
  left < right ? -1 : left > right ? 1 : 0;

/** The location of the facts that ship with the project; `npm run catalog:refresh` writes them. */
export const bundledFactsUrl = new URL("./facts.json", import.meta.url);

/** What is kept of the bundled facts: all but their rows, which are read again where they are needed. */
interface BundledHead {
  /** The time and size of the file, by which another content is noticed. */
  stamp: string;
  head: Omit<CatalogFacts, "rows">;
}

let bundled: BundledHead | undefined;

const heads = new WeakMap<CatalogFacts, BundledHead>();

/**
 * Reads the bundled facts. They were checked when they were written, so a start does not check them
 * again. After the first time the rows are read when they are first asked for.
 */
export function readBundledFacts(): CatalogFacts {
  const { mtimeMs, size } = statSync(bundledFactsUrl);
  const stamp = `${mtimeMs} ${size}`;
  let rows: CatalogFacts["rows"] | undefined;
  if (bundled?.stamp !== stamp) {
    const { rows: read, ...head } = parseBundled();
    rows = read;
    bundled = { stamp, head };
  }
  const facts: CatalogFacts = {
    ...bundled.head,
    get rows() {
      return (rows ??= parseBundled().rows);
    },
  };
  heads.set(facts, bundled);
  return facts;
}

const parseBundled = (): CatalogFacts =>
  JSON.parse(readFileSync(bundledFactsUrl, "utf8")) as CatalogFacts;

/**
 * Returns an object that is the same for bundled facts of the same content; undefined for any
 * others.
 */
export const contentOf = (facts: CatalogFacts): object | undefined => heads.get(facts);

/**
 * Reads and checks an operator's own facts. Throws the error of the file system, the parser or the
 * schema.
 */
export const readFacts = (path: string): CatalogFacts =>
  catalogFactsSchema.parse(JSON.parse(readFileSync(path, "utf8")));

/** The changes of a refresh, with each row as `provider id`. */
export interface FactsChange {
  added: string[];
  removed: string[];
  changed: string[];
  /** Prices that changed by more than half, in words. */
  priceMoves: string[];
}

/** Compares two states of the facts row by row. */
export function compareFacts(before: CatalogFacts, after: CatalogFacts): FactsChange {
  const old = new Map(before.rows.map((row) => [rowKey(row), row]));
  const fresh = new Map(after.rows.map((row) => [rowKey(row), row]));
  const change: FactsChange = { added: [], removed: [], changed: [], priceMoves: [] };
  for (const key of old.keys()) if (!fresh.has(key)) change.removed.push(key);
  for (const [key, row] of fresh) {
    const previous = old.get(key);
    if (previous === undefined) change.added.push(key);
    else if (!Bun.deepEquals(previous, row)) {
      change.changed.push(key);
      change.priceMoves.push(...priceMoves(key, previous, row));
    }
  }
  return change;
}

const rowKey = ({ provider, id }: FactRow): string => `${provider} ${id}`;

function priceMoves(key: string, before: FactRow, after: FactRow): string[] {
  const moves = movesOf(key, before.prices, after.prices);
  for (const { above, prices } of after.tiers ?? []) {
    const previous = before.tiers?.find((tier) => tier.above === above)?.prices;
    moves.push(...movesOf(`${key} above ${above} tokens`, previous, prices));
  }
  return moves;
}

/**
 * Returns the price moves of a row. A part that only one side prices did not move: its fallback
 * did, and is compared too.
 */
function movesOf(
  key: string,
  before: FactPrices | undefined,
  after: FactPrices | undefined,
): string[] {
  if (before === undefined || after === undefined) return [];
  const parts = Object.keys(after) as (keyof FactPrices)[];
  return parts.flatMap((part) => {
    const [from, to] = [before[part], after[part]];
    const moved = from !== undefined && to !== undefined && isLargeMove(from, to);
    return moved ? [`${key}: ${part} ${from} -> ${to}`] : [];
  });
}

/** Returns whether a price rose or fell by more than half. */
function isLargeMove(from: string, to: string): boolean {
  const before = picoPerTokenFromUsdPerMillion(from) ?? 0n;
  const after = picoPerTokenFromUsdPerMillion(to) ?? 0n;
  const distance = after > before ? after - before : before - after;
  return distance * 2n > before;
}
