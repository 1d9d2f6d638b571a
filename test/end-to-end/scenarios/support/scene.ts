import type { AppSettings } from "../../../../src/app/settings-of.ts";
import type { ConfiguredProvider } from "../../../../src/inference/catalog/configured/configured-provider.ts";
import { acme, provider, startGateway, type TestGateway } from "../../../support/gateway.ts";
import {
  startFaultUpstream,
  type FaultUpstream,
} from "../../../support/upstream/fault-upstream.ts";
import { expectSoundBooks } from "./expect-sound-books.ts";

/** Timeouts that are over soon, for providers that never do anything but stall. */
export const hastyTimeouts = { connect: 60, first_token: 60, idle: 60, total: 150 };

/**
 * Timeouts for providers that stall in the middle: what they send before is waited for on any
 * machine.
 */
export const haltingTimeouts = { connect: 5_000, first_token: 5_000, idle: 120, total: 20_000 };

/**
 * Timeouts that are over before a test is and that a healthy answer stays below on a busy machine.
 */
export const shortTimeouts = { connect: 1_000, first_token: 300, idle: 300, total: 2_000 };

/** A gateway before two upstreams; both serve `acme/large`, acme for a little less. */
export interface Scene {
  gateway: TestGateway;
  acme: FaultUpstream;
  backup: FaultUpstream;
  /** Checks the books, then lets everything go. */
  end(): Promise<void>;
}

export interface SceneOptions {
  /** Fields of acme's entry, such as `timeouts_ms`. */
  acme?: Record<string, unknown>;
  /** Whether the backup is configured. */
  withBackup?: boolean;
  settings?: Partial<AppSettings>;
  /** Providers in place of acme and the backup, at the addresses of the two upstreams. */
  providers?: (first: string, second: string) => ConfiguredProvider[];
}

/** The backup's `providers:` entry: the same model for twice the price. */
export const backupProvider = (baseUrl: string) =>
  provider({
    id: "backup",
    name: "Backup Inference",
    base_url: baseUrl,
    dialect: "openai-chat",
    api_key: "upstream-secret",
    models: [
      {
        id: "acme/large",
        upstream_model: "large-backup",
        context_length: 131072,
        pricing: { prompt: "1.00", completion: "3.00" },
      },
    ],
  });

/** Starts a gateway with acme, and with the backup where it is wanted. */
export async function startScene(options: SceneOptions = {}): Promise<Scene> {
  const [first, second] = await Promise.all([startFaultUpstream(), startFaultUpstream()]);
  const gateway = await startGateway({
    providers: options.providers?.(first.baseUrl, second.baseUrl) ?? [
      acme(first.baseUrl, options.acme),
      ...(options.withBackup ? [backupProvider(second.baseUrl)] : []),
    ],
    ...options.settings,
  });
  return {
    gateway,
    acme: first,
    backup: second,
    async end() {
      try {
        await expectSoundBooks(gateway);
      } finally {
        await gateway.stop();
        first.stop();
        second.stop();
      }
    },
  };
}

/** A chat request that tries acme first and the backup second. */
export const chatRequest = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: "acme/large",
  messages: [{ role: "user", content: "Hello" }],
  provider: { order: ["acme", "backup"] },
  ...changes,
});
