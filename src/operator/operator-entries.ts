import type { AliasTarget } from "../platform/kernel/models/model-alias.ts";
import type { ConfigurationProblem } from "../platform/config/configuration-error.ts";
import { ConfigurationError } from "../platform/config/configuration-error.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import type { CatalogChange } from "../inference/catalog/build-catalog.ts";
import type { ConfiguredRouters } from "../inference/catalog/router-models.ts";
import type { ConfiguredProvider } from "../inference/catalog/configured/configured-provider.ts";
import { secretKeptElsewhere, withStoredSecrets } from "./entry-secrets.ts";
import type { EntrySection, EntryStore, EntryValue, StoredEntry } from "./entry-store.ts";

/** The parts of the configuration that entries are layered over. */
interface Layered {
  providers: readonly ConfiguredProvider[];
  routers?: ConfiguredRouters;
  aliases?: Readonly<Record<string, AliasTarget>>;
}

/** An entry that is in force, or would be. */
export interface ListedEntry {
  section: EntrySection;
  id: string;
  value: EntryValue;
  source: "file" | "page";
  /** Whether requests see it: the file takes precedence, and what cannot be used is left out. */
  inForce: boolean;
  problem: string | null;
  updatedAtMs: number | null;
  updatedBy: string | null;
}

/** A change of an entry, by whom. */
interface EntryChange {
  section: EntrySection;
  id: string;
  value: EntryValue;
  operatorId: string;
}

/** The configuration of one entry, as switchyard.yaml has it. */
const documentOf = ({ section, id, value }: Pick<StoredEntry, "section" | "id" | "value">) =>
  section === "providers"
    ? { providers: [{ ...value, id }] }
    : { [section]: { [id]: section === "aliases" ? value["target"] : value } };

/** Removes what is before the entry from the path of a problem. */
const pathInEntry = (key: string): string =>
  key.replace(/^(?:providers\[0\]|routers\.[^.]+|aliases\.[^.]+)\.?/, "");

const inWords = ({ key, message }: ConfigurationProblem): string =>
  [pathInEntry(key), message].filter((part) => part !== "").join(": ");

/** Whether some text in a value refers to a variable of the process. */
const refersToVariables = (value: unknown): boolean =>
  typeof value === "string"
    ? value.includes("${")
    : typeof value === "object" && value !== null && Object.values(value).some(refersToVariables);

/**
 * Addresses of services of the machine itself, which hand out its credentials, in every form that a
 * URL's host has: also as IPv4 in IPv6, and with a dot at the end of a name.
 */
const isLinkLocal = (text: string): boolean =>
  URL.canParse(text) &&
  /^(?:169\.254\.|\[fe[89ab][\da-f]:|\[::ffff:a9fe:|\[fd00:ec2::254\]|metadata\.google\.internal\.?$)/.test(
    new URL(text).hostname,
  );

/**
 * Checks an entry by the schema of switchyard.yaml, and returns what the catalog takes. Variables
 * of the process are not reachable from the page.
 */
async function checked(
  entry: Pick<StoredEntry, "section" | "id" | "value">,
): Promise<{ layered: Layered; problems: readonly ConfigurationProblem[] }> {
  const problems: ConfigurationProblem[] = [];
  const nothing: Layered = { providers: [], routers: {}, aliases: {} };
  if (refersToVariables(entry.value))
    problems.push({
      key: "",
      message: "only switchyard.yaml may refer to variables with ${NAME}; write the value itself",
    });
  const { base_url: address } = entry.value;
  if (typeof address === "string" && isLinkLocal(address))
    problems.push({ key: "base_url", message: "expected an address that is not link-local" });
  if (problems.length > 0) return { layered: nothing, problems };
  // Loaded by the first entry: a gateway without any starts without them.
  const [{ checkSettings }, { configuredProviderSchema }] = await Promise.all([
    import("../platform/config/check-settings.ts"),
    import("../inference/catalog/configured/configured-provider.ts"),
  ]);
  const settings = checkSettings(
    JSON.stringify(documentOf(entry)),
    { file: "", directory: "", environment: {}, providerSchema: configuredProviderSchema },
    problems,
  );
  const routers = Object.entries(settings?.routers ?? {}).flatMap(([id, router]) =>
    router === undefined ? [] : [[id, { ...router, quality: router.quality ?? [] }] as const],
  );
  return {
    layered: {
      providers: settings?.providers ?? [],
      routers: Object.fromEntries(routers),
      aliases: settings?.aliases ?? {},
    },
    problems,
  };
}

const isSame = (
  one: Pick<StoredEntry, "section" | "id">,
  other: Pick<StoredEntry, "section" | "id">,
): boolean => one.section === other.section && one.id === other.id;

const isInFile = (file: Layered, { section, id }: Pick<StoredEntry, "section" | "id">): boolean =>
  section === "providers"
    ? file.providers.some((provider) => provider.id === id)
    : Object.hasOwn(file[section] ?? {}, id);

/** Sources that a catalog may be built from, and what is called once it was. */
export interface Accepted<Sources> {
  sources: Sources;
  accept(): void;
}

/**
 * What operators configure in the page: stored in the database, and layered over switchyard.yaml,
 * which takes precedence.
 */
export class OperatorEntries {
  private readonly store: EntryStore;
  private readonly clock: Clock;
  private file: Layered = { providers: [] };
  private listed: readonly ListedEntry[] = [];
  /** Reads the configuration again on every gateway. */
  private apply: (() => Promise<CatalogChange>) | undefined;
  private last: Promise<unknown> = Promise.resolve();

  constructor({ store, clock }: { store: EntryStore; clock: Clock }) {
    this.store = store;
    this.clock = clock;
  }

  /** Sets what a change calls to take effect. */
  appliedBy(apply: () => Promise<CatalogChange>): void {
    this.apply = apply;
  }

  /**
   * Returns the sources with the entries layered over them. An entry that the schema no longer
   * accepts is left out and listed with its problem, so that a start never fails for one. What is
   * listed stays as it is until `accept` is called.
   */
  async over<Sources extends Layered>(sources: Sources): Promise<Accepted<Sources>> {
    const { providers: ofFile, routers: routersOfFile = {}, aliases: aliasesOfFile = {} } = sources;
    const file: Layered = { providers: ofFile, routers: routersOfFile, aliases: aliasesOfFile };
    const providers = [...ofFile];
    const routers = { ...routersOfFile };
    const aliases = { ...aliasesOfFile };
    const listed: ListedEntry[] = [];
    for (const { updatedAtMs, updatedBy, ...entry } of await this.store.all()) {
      const { layered, problems } = await checked(entry);
      const inForce = problems.length === 0 && !isInFile(file, entry);
      const problem = problems.length === 0 ? null : problems.map(inWords).join("; ");
      listed.push({ ...entry, source: "page", inForce, problem, updatedAtMs, updatedBy });
      if (!inForce) continue;
      providers.push(...layered.providers);
      Object.assign(routers, layered.routers);
      Object.assign(aliases, layered.aliases);
    }
    return {
      sources: { ...sources, providers, routers, aliases },
      accept: () => {
        this.file = file;
        this.listed = listed;
      },
    };
  }

  /** Returns the entries of the file and of the page. */
  list(): readonly ListedEntry[] {
    const ofFile = (section: EntrySection, id: string, value: EntryValue): ListedEntry => ({
      ...{ section, id, value, source: "file", inForce: true },
      ...{ problem: null, updatedAtMs: null, updatedBy: null },
    });
    return [
      ...this.file.providers.map(({ id, ...value }) => ofFile("providers", id, value)),
      ...Object.entries(this.file.routers ?? {}).map(([id, value]) =>
        ofFile("routers", id, { ...value }),
      ),
      ...Object.entries(this.file.aliases ?? {}).map(([id, target]) =>
        ofFile("aliases", id, { target }),
      ),
      ...this.listed,
    ];
  }

  /**
   * Checks an entry without storing it, and returns it as the catalog takes it, with the secrets
   * that it keeps. Throws `bad_request` that names the field.
   */
  async check(entry: Pick<EntryChange, "section" | "id" | "value">): Promise<Layered> {
    return (await this.resolved(entry)).layered;
  }

  /**
   * Stores an entry in place of one with its id, and applies it on every gateway. Throws
   * `bad_request` that names the field, and `conflict` where the file has the id.
   */
  put({ operatorId, ...entry }: EntryChange): Promise<CatalogChange> {
    return this.inTurn(async () => {
      this.requireNotInFile(entry);
      const { value } = await this.resolved(entry);
      const before = await this.find(entry);
      const updatedAtMs = this.clock.nowMs();
      await this.store.put({ ...entry, value, updatedAtMs, updatedBy: operatorId });
      return this.applied(before, entry);
    });
  }

  /** Deletes an entry, and applies that. Throws `not_found`, and `conflict` for one of the file. */
  remove(entry: Pick<EntryChange, "section" | "id">): Promise<CatalogChange> {
    return this.inTurn(async () => {
      const before = await this.find(entry);
      if (before === undefined) {
        this.requireNotInFile(entry);
        throw new GatewayError(
          "not_found",
          "There is no such entry. GET /admin/configuration lists them.",
        );
      }
      await this.store.remove(entry);
      return this.applied(before, entry);
    });
  }

  private inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const run = this.last.then(work);
    this.last = run.catch(() => undefined);
    return run;
  }

  private async find(entry: Pick<StoredEntry, "section" | "id">): Promise<StoredEntry | undefined> {
    return (await this.store.all()).find((each) => isSame(each, entry));
  }

  private async resolved({ section, id, value }: Pick<EntryChange, "section" | "id" | "value">) {
    const stored = await this.find({ section, id });
    const whole = withStoredSecrets(value, stored?.value);
    const { layered, problems } = await checked({ section, id, value: whole });
    const [first] = problems;
    if (first !== undefined)
      throw new GatewayError("bad_request", `${problems.map(inWords).join("; ")}.`, {
        param: `value.${pathInEntry(first.key)}`.replace(/\.$/, ""),
      });
    const { fixedAddressOf } = await import(
      "../inference/catalog/configured/configured-provider.ts"
    );
    const kept = secretKeptElsewhere(value, stored?.value, fixedAddressOf(id));
    if (kept !== undefined)
      throw new GatewayError(
        "bad_request",
        `${kept}: is required with a base_url at another host, or with another proxy where base_url is no https address, since what ` +
          "is stored is for the old one.",
        { param: `value.${kept}` },
      );
    return { layered, value: whole };
  }

  /** Applies what is stored; what cannot be applied is put back as it was. */
  private async applied(
    before: StoredEntry | undefined,
    entry: Pick<StoredEntry, "section" | "id">,
  ): Promise<CatalogChange> {
    try {
      return (await this.apply?.()) ?? { added: [], removed: [], repriced: [] };
    } catch (error) {
      if (before === undefined) await this.store.remove(entry);
      else await this.store.put(before);
      await this.apply?.().catch(() => undefined);
      if (!(error instanceof ConfigurationError)) throw error;
      throw new GatewayError(
        "conflict",
        `The configuration cannot be used with this entry, and nothing was changed: ${error.message}`,
      );
    }
  }

  private requireNotInFile(entry: Pick<StoredEntry, "section" | "id">): void {
    if (!isInFile(this.file, entry)) return;
    throw new GatewayError(
      "conflict",
      `switchyard.yaml has ${entry.id} under ${entry.section}, and the file takes precedence. Change it there, or remove it there first.`,
      { param: "id" },
    );
  }
}
