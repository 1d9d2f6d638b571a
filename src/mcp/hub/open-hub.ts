import { parseRange } from "../../platform/kernel/network/address-range.ts";
import { Entries } from "./entries.ts";
import { EntryStore } from "./entry-store.ts";
import { Hubs } from "./hubs.ts";
import { SearchIndex } from "./search-index.ts";
import { DocumentFetcher } from "./document-fetcher.ts";
import { type HubOptions, HubLibrary } from "./hub-library.ts";

/** Builds the hub. */
export function openHub({
  database,
  kind,
  clock,
  importNetworks,
  resolve,
}: HubOptions): HubLibrary {
  const index = new SearchIndex(kind);
  const store = new EntryStore(database, index);
  const allowed = importNetworks.flatMap((range) => parseRange(range) ?? []);
  return new HubLibrary({
    entries: new Entries({ store, clock }),
    hubs: new Hubs({ store, index, clock }),
    fetcher: new DocumentFetcher({ allowed, ...(resolve === undefined ? {} : { resolve }) }),
  });
}
