import { ownerOf } from "../fact-model.ts";
import { makerAliases, makerOfName, makersName } from "./model-names.ts";
import type { CatalogModel } from "../model.ts";

/** Matches the end of an id that names a version by its date, or the newest one. */
const versionEnding = /[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest|default)$/;

const freeEnding = /:free$/;

const withoutOwner = (id: string): string => id.slice(id.indexOf("/") + 1);

/**
 * Returns further names of a catalog's models, mapped to their ids; an ambiguous name is left out.
 */
export function vendorNames(
  models: ReadonlyMap<string, CatalogModel>,
  aliases: ReadonlyMap<string, string>,
): Map<string, string> {
  const names = new Map<string, string>();
  const addAll = (pairs: Iterable<readonly [name: string, id: string]>): void => {
    const meanings = new Map<string, string | undefined>();
    for (const [name, id] of pairs) {
      if (models.has(name) || aliases.has(name) || names.has(name)) continue;
      meanings.set(
        name,
        meanings.has(name) && meanings.get(name) !== id
          ? preferred(name, [meanings.get(name), id])
          : id,
      );
    }
    for (const [name, id] of meanings) if (id !== undefined) names.set(name, id);
  };
  // The more certain names come first: an id without its owner, then the newest of dated ids, then
  // a model's wire name.
  const owned = [...models.values()].filter(({ router }) => router === undefined);
  addAll(
    [...owned.map(({ id }) => [id, id] as const), ...aliases].map(([name, id]) => [
      withoutOwner(name),
      id,
    ]),
  );
  addAll(newestVersions(models));
  addAll(
    [...models.values()].filter(({ surface }) => surface === "decisions").flatMap(decisionNames),
  );
  return names;
}

/**
 * Returns the model with this name whose owner the name implies; undefined where it implies none of
 * theirs.
 */
const preferred = (name: string, ids: readonly (string | undefined)[]): string | undefined =>
  ids.find((id) => id !== undefined && ownerOf(id) === makerOfName(name));

/**
 * Yields the undated names of models of which the catalog has only dated versions, with and without
 * their owner.
 */

function* newestVersions(models: ReadonlyMap<string, CatalogModel>): Generator<[string, string]> {
  const newest = new Map<string, string>();

  for (const id of models.keys()) {
    const undated = id.replace(versionEnding, "");

    if (undated !== id && id > (newest.get(undated) ?? "")) newest.set(undated, id);
  }

  for (const [undated, id] of newest)
    yield* [
      [undated, id],

      [withoutOwner(undated), id],
    ] satisfies [string, string][];
}

/**
 * Returns the names of a decision model: its wire names, and its ids without `:free`, since
 * decisions cost nothing.
 */
function decisionNames({ id, routes }: CatalogModel): [string, string][] {
  const names = [
    id,
    withoutOwner(id),
    ...routes.map(({ upstreamModel }) => upstreamModel.toLowerCase()),
  ];
  return names.flatMap((name): [string, string][] => [
    [name, id],
    [name.replace(freeEnding, ""), id],
  ]);
}

/**
 * A parsed id as a vendor writes it: the owner, the owner's name of the model, and what follows the
 * owner in the id.
 */
interface VendorId {
  maker: string;
  /** `maker/name` in the catalog's spelling. */
  catalogId: string;
  /** The name as it was written, for the vendor's own wire. */
  wireName: string;
}

/** Parses an id with or without its owner; undefined where the owner is unknown. */
export function readVendorId(id: string): VendorId | undefined {
  // Google's clients write `models/` before each name.
  const plain = id.replace(/^models\//, "");
  const slash = plain.indexOf("/");
  const wireName = plain.slice(slash + 1);
  const owner = slash < 0 ? makerOfName(wireName) : plain.slice(0, slash);
  if (owner === undefined || wireName === "") return undefined;
  const maker = makerAliases[owner] ?? owner;
  return { maker, catalogId: `${maker}/${makersName(maker, wireName)}`, wireName };
}

/**
 * Yields the ids under which a catalog may have the model of a lower-case id, most certain first;
 * the id itself is not among them.
 */
export function* otherSpellings(id: string): Generator<string> {
  const undated = id.replace(versionEnding, "");
  for (const name of undated === id ? [id] : [id, undated]) {
    if (name !== id) yield name;
    const read = readVendorId(name);
    if (read === undefined) continue;
    if (meansTheSame(read.wireName)) yield read.wireName;
    yield read.catalogId;
  }
}

/**
 * Tells whether a name without what was before its slash still names one maker's model, as in
 * `azure/gpt-5.5` and `openrouter/acme/large`. With another owner, `large` is another model.
 */
const meansTheSame = (wireName: string): boolean =>
  wireName.includes("/") || makerOfName(wireName) !== undefined;

/**
 * Returns the first two words of a model's name, such as `claude opus` for
 * `anthropic/claude-opus-4.1`.
 */
export const familyOf = (id: string): string =>
  id
    .slice(id.lastIndexOf("/") + 1)
    .split(/[-._:]/, 2)
    .join(" ");

/** Returns ids by their family; the newest, which have the highest numbers, first. */
export function familiesOf(ids: Iterable<string>): Map<string, string[]> {
  const families = new Map<string, string[]>();
  for (const id of ids) {
    const family = familyOf(id);
    const known = families.get(family);
    if (known === undefined) families.set(family, [id]);
    else known.push(id);
  }
  const { compare } = new Intl.Collator("en", { numeric: true });
  for (const family of families.values()) family.sort((left, right) => compare(right, left));
  return families;
}
