import { readFileSync } from "node:fs";
import { catalogFactsSchema, type CatalogFacts } from "./catalog-facts.ts";

/** Where the facts that ship with the project lie; `npm run catalog:refresh` writes them. */
export const bundledFactsUrl = new URL("./facts.json", import.meta.url);

/** Reads the bundled facts. They were checked when they were written, so a start does not check again. */
export const readBundledFacts = (): CatalogFacts =>
  JSON.parse(readFileSync(bundledFactsUrl, "utf8")) as CatalogFacts;

/** Reads and checks facts of an operator's own. Throws what the file system, the parser or the schema throws. */
export const readFacts = (path: string): CatalogFacts =>
  catalogFactsSchema.parse(JSON.parse(readFileSync(path, "utf8")));
