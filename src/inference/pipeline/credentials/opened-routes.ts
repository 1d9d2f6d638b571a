import type { UpstreamRoute, Provider } from "../../catalog/model.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { ProviderKeys } from "../../../byok/provider-keys.ts";
import type { Clock } from "../../../platform/kernel/clock.ts";

/** Milliseconds that an opened key stays in memory after its last use. */
const keptMs = 60_000;

interface OpenedKey {
  sealed: string;
  secret: string;
  usedMs: number;
  /** The catalog's routes, each mapped to its copy with the key. */
  routes: Map<UpstreamRoute, UpstreamRoute>;
}

/**
 * Routes with callers' own keys in place of the platform's credential. A key is opened when a
 * request is about to be sent with it, and forgotten a minute after its last use, so that idle keys
 * are in memory only sealed.
 */
export class OpenedRoutes {
  private readonly keys = new Map<string, OpenedKey>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly options: {
      providerKeys: ProviderKeys;
      clock: Clock;
      onError(error: unknown): void;
    },
  ) {}

  /**
   * Returns the candidate with its key opened; undefined where the key cannot be opened, which is
   * logged.
   */
  open(candidate: Candidate): Candidate | undefined {
    if (candidate.credential === undefined) return candidate;
    const { key, source } = candidate.credential;
    // Response headers are cached by route, and they tell the owner's requests from those of
    // others.
    const name = `${source} ${key.id}`;
    let opened = this.keys.get(name);
    if (opened?.sealed !== key.sealed) {
      try {
        opened = {
          sealed: key.sealed,
          secret: this.options.providerKeys.secretOf(key),
          usedMs: 0,
          routes: new Map(),
        };
      } catch (error) {
        this.options.onError(error);
        return undefined;
      }
      this.keys.set(name, opened);
      this.timer ??= setInterval(() => this.forget(), keptMs / 2);
    }
    opened.usedMs = this.options.clock.monotonicMs();
    return { ...candidate, route: routeWith(opened, candidate.route), reason: candidate.reason };
  }

  /** Forgets every key that was not used for a minute. */
  forget(): void {
    const oldestMs = this.options.clock.monotonicMs() - keptMs;
    for (const [name, { usedMs }] of this.keys) if (usedMs <= oldestMs) this.keys.delete(name);
    if (this.keys.size === 0) this.stop();
  }

  /** Stops the timer. */
  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

function routeWith({ routes, secret }: OpenedKey, route: UpstreamRoute): UpstreamRoute {
  let opened = routes.get(route);
  if (opened === undefined)
    routes.set(route, (opened = { ...route, provider: withKey(route.provider, secret) }));
  return opened;
}

/** Returns a provider with a key in place of the platform's credential. */
function withKey({ signing: _, ...provider }: Provider, apiKey: string): Provider {
  return { ...provider, apiKey };
}
