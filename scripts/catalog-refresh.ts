// Refreshes the catalog's facts: npm run catalog:refresh -- [path or URL] [--output=facts.json]
// [--accept-price-moves]
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import {
  bundledFactsUrl,
  catalogFactsSchema,
  factsText,
  compareFacts,
  type CatalogFacts,
  type FactsChange,
} from "../src/inference/catalog/catalog-facts.ts";
import { parseFactsSource } from "../src/inference/catalog/refresh/facts-source.ts";
import { transformFacts } from "../src/inference/catalog/refresh/transform-facts.ts";
import { systemClock } from "../src/platform/kernel/clock.ts";

/** What a refresh reads and writes. */
export interface RefreshOptions {
  /** A path, or an http(s) URL. */
  source: string;
  /** The facts file that is replaced. */
  outputPath: string;
  acceptPriceMoves: boolean;
  /** `YYYY-MM-DD`; the snapshot date of a source that names none. */
  today: string;
}

/** How a refresh ended, and what to tell about it. */
export interface RefreshResult {
  ok: boolean;
  lines: string[];
}

/** Replaces the facts file, or says why not and leaves it as it was. */
export async function refreshCatalog(options: RefreshOptions): Promise<RefreshResult> {
  try {
    const facts = catalogFactsSchema.parse(transformFacts(await readSource(options)));
    if (facts.rows.length === 0)
      return { ok: false, lines: ["refused: the source has no usable rows"] };
    const change = compareFacts(readFacts(options.outputPath) ?? { ...facts, rows: [] }, facts);
    if (change.priceMoves.length > 0 && !options.acceptPriceMoves) return refusal(change);
    const temporaryPath = `${options.outputPath}.new`;
    writeFileSync(temporaryPath, factsText(facts));
    renameSync(temporaryPath, options.outputPath);
    return { ok: true, lines: summary(facts, change) };
  } catch (error) {
    return { ok: false, lines: [`refused: ${reasonOf(error)}`] };
  }
}

async function readSource({ source, today }: RefreshOptions) {
  return parseFactsSource(JSON.parse(await readText(source)), today);
}

async function readText(source: string): Promise<string> {
  if (!/^https?:\/\//.test(source)) return readFileSync(source, "utf8");
  const response = await fetch(source, { signal: AbortSignal.timeout(60_000) });
  if (!response.ok) throw new Error(`${source} answered ${response.status}`);
  return response.text();
}

const readFacts = (path: string): CatalogFacts | undefined =>
  existsSync(path) ? catalogFactsSchema.parse(JSON.parse(readFileSync(path, "utf8"))) : undefined;

const refusal = ({ priceMoves }: FactsChange): RefreshResult => ({
  ok: false,
  lines: [
    `refused: ${priceMoves.length} prices moved by more than 50 %`,
    ...priceMoves.map((move) => `  ${move}`),
    "Look at the vendors' price pages, then run again with --accept-price-moves.",
  ],
});

function summary(facts: CatalogFacts, change: FactsChange): string[] {
  const models = new Set(facts.rows.map(({ id }) => id)).size;
  return [
    `${facts.source}, ${facts.snapshot}: ${models} models, ${facts.rows.length} rows`,
    ...section("added", change.added),
    ...section("removed", change.removed),
    ...section("changed", change.changed),
  ];
}

const shownRows = 20;

function section(title: string, rows: readonly string[]): string[] {
  const shown = rows.slice(0, shownRows).map((row) => `  ${row}`);
  const rest = rows.length > shownRows ? [`  and ${rows.length - shownRows} more`] : [];
  return [`${title}: ${rows.length}`, ...shown, ...rest];
}

const reasonOf = (error: unknown): string =>
  error instanceof z.ZodError
    ? z.prettifyError(error)
    : error instanceof Error
      ? error.message
      : String(error);

/** Names another facts file than the bundled one, for `catalog.facts` of switchyard.yaml. */
const outputOption = "--output=";

async function main(): Promise<void> {
  const words = process.argv.slice(2);
  const result = await refreshCatalog({
    source:
      words.find((word) => !word.startsWith("--")) ??
      process.env["CATALOG_FACTS_URL"] ??
      "https://models.dev/api.json",
    outputPath:
      words.find((word) => word.startsWith(outputOption))?.slice(outputOption.length) ??
      fileURLToPath(bundledFactsUrl),
    acceptPriceMoves: words.includes("--accept-price-moves"),
    today: new Date(systemClock.nowMs()).toISOString().slice(0, 10),
  });
  const print = result.ok ? console.log : console.error;
  for (const line of result.lines) print(line);
  process.exitCode = result.ok ? 0 : 1;
}

if (import.meta.main) await main();
