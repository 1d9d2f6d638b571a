import type { ProviderKeys } from "../account/byok/provider-keys.ts";
import type { Clock } from "../platform/lib/clock.ts";
import type { Provider, UpstreamRoute } from "./catalog/model.ts";
import type { Candidate } from "./routing/candidate.ts";

/** How long an opened key stays in memory after its last use. */
const keptMs = 60_000;

interface OpenedKey {
  sealed: string;
  secret: string;
  usedMs: number;
  /** The catalog's routes to those with the key. */
  routes: Map<UpstreamRoute, UpstreamRoute>;
}

/**
 * Routes with callers' own keys in place of the platform's credential. A key is opened when a request is about to
 * be sent with it, and forgotten a minute after the last one: what is not in use is in memory sealed alone.
 */
export class OpenedRoutes {
  private readonly options: {
    providerKeys: ProviderKeys;
    clock: Clock;
    onError(error: unknown): void;
  };
  private readonly keys = new Map<string, OpenedKey>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: OpenedRoutes["options"]) {
    this.options = options;
  }

  /** The candidate as it can be sent to; undefined where its key cannot be opened, which is told. */
  open(candidate: Candidate): Candidate | undefined {
    if (candidate.credential === undefined) return candidate;
    const { key, source } = candidate.credential;
    // Routes are what answers' headers hang on, and those tell the owner's requests from others'.
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

  /** Ends the timer. */
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

/** A provider with a key in place of whatever the platform proves itself by. */
function withKey({ signing: _, ...provider }: Provider, apiKey: string): Provider {
  return { ...provider, apiKey };
}
