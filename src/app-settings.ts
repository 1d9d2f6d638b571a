import type { BootstrapSettings } from "./account/bootstrap.ts";
import type { TrustedProxies } from "./http/client-address.ts";
import type { ConfiguredProvider } from "./inference/catalog/configured-provider.ts";
import type { DisconnectPolicy } from "./inference/dependencies.ts";
import type { Durability } from "./platform/storage/storage.ts";

/** Everything that the app is built from; nothing below reads the environment. */
export interface AppSettings {
  version: string;
  storageUrl: string;
  durability: Durability;
  /** 32 bytes. */
  encryptionKey: Uint8Array;
  /** Where vendors' credentials and addresses are looked up. */
  environment: Readonly<Record<string, string | undefined>>;
  providers: readonly ConfiguredProvider[];
  /** `auto` runs the sandbox only while no provider has a platform credential. */
  sandbox: boolean | "auto";
  plans: Readonly<Record<string, { perMinute?: number | undefined } | undefined>>;
  bootstrap: BootstrapSettings;
  /** How long generation records are kept, in days. */
  generationDays: number;
  trustProxy: TrustedProxies;
  disconnect: DisconnectPolicy;
  /** Metrics have a port of their own, so they are not served beside the API. */
  metricsElsewhere: boolean;
  /** Where callers reach the service, without a trailing slash; asked for once it listens. */
  publicUrl(): string;
}
