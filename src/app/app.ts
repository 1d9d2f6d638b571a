import type { KeyProber } from "../account/byok/key-prober.ts";
import type { LedgerPort } from "../account/ledger/ledger-port.ts";
import type { Account } from "../account/open-account.ts";
import type { Payments } from "../account/payments/open-payments.ts";
import type { AppTables } from "./build-storage.ts";
import type { Consent } from "../consent/open-consent.ts";
import type { compileRoutes } from "../http/router.ts";
import type { CatalogChange } from "../inference/catalog/catalog-change.ts";
import type { CatalogSnapshot } from "../inference/catalog/model.ts";
import type { Sandbox } from "../inference/sandbox/sandbox.ts";
import type { BackgroundRunner } from "../inference/stored-responses/background-runner.ts";
import type { Insights } from "../insights/open-insights.ts";
import type { CatalogSources } from "./live-catalog.ts";
import type { Storage } from "../platform/storage/storage.ts";

/** The gateway, ready to be listened for. */
export interface App {
  routes: ReturnType<typeof compileRoutes>["routes"];
  fallback: ReturnType<typeof compileRoutes>["fallback"];
  /** The catalog of the moment. */
  catalog(): CatalogSnapshot;
  /** Replaces the catalog as a whole and tells what changed. Throws `ConfigurationError`, and then it stays as it was. */
  refreshCatalog(sources: CatalogSources): CatalogChange;
  /** Makes the key that a first start shows, and gives its secret; undefined on every other start. */
  mintFirstKey(): Promise<string | undefined>;
  /** Makes the token of the link that claims the owner account, in place of the one before; undefined once it is claimed. */
  issueClaim(): Promise<string | undefined>;
  sandbox: Sandbox | undefined;
  ledger: LedgerPort;
  budgets: Account["budgets"];
  people: Account["people"];
  referrals: Account["referrals"];
  insights: Insights;
  consent: Consent;
  storage: Storage<AppTables>;
  /** Undefined where no key for Stripe is configured. */
  payments: Payments | undefined;
  background: BackgroundRunner;
  /** Asks about donated provider keys that were refused. */
  prober: KeyProber;
  /** Deletes conversations that are older than they are kept. */
  purgeConversations(): Promise<void>;
  /** Tells load balancers to send no more; requests are still served. */
  startDraining(): void;
  /** Stops waiting for providers: what they have sent so far is what is settled; background responses go back to their queue. */
  breakOffUpstreams(): void;
  /** Writes what is pending and lets go of everything. */
  close(): Promise<void>;
}
