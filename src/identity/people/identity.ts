/** Signs people in: passwords, passkeys and OIDC providers, with the routes of better-auth. */
export interface Identity {
  /** Answers a request to one of its routes, below `identityPath`. */
  handle(request: Request): Promise<Response>;
  /** Ids of the OIDC providers that could be reached. */
  providerIds: readonly string[];
}

/** Where the library's routes stand. Only those that the endpoint table names are served. */
export const identityPath = "/api/auth";

/**
 * Header in which the door tells the library the client's address; what a client sends under this
 * name is dropped.
 */
export const clientAddressHeader = "x-switchyard-client-address";

/** An OIDC provider of the configuration. */
export interface OidcProvider {
  /** Slug; part of the callback's path. */
  id: string;
  name: string;
  /** `/.well-known/openid-configuration` is looked up below it. */
  issuer: string;
  clientId: string;
  /** Absent for public clients, which prove themselves by PKCE alone. */
  clientSecret: string | undefined;
  scopes: readonly string[];
  /** Gives every person who signs in here an account; else they need an invitation or `open`. */
  signUp: boolean;
}

/** How long to wait before a provider that could not be reached is asked again. */
const retryAfterMs = 30_000;

/**
 * Loads the library with its first use: it takes longer than everything else at the start together.
 * Providers are read then, so one that was down is asked again later.
 */
export class LazyIdentity {
  private readonly load: () => Promise<Identity>;
  private readonly providerCount: number;
  private readonly nowMs: () => number;
  private loading: Promise<Identity> | undefined;
  private loadedMs = 0;

  constructor(options: {
    load: () => Promise<Identity>;
    providerCount: number;
    nowMs: () => number;
  }) {
    this.load = options.load;
    this.providerCount = options.providerCount;
    this.nowMs = options.nowMs;
  }

  async handle(request: Request): Promise<Response> {
    return (await this.current()).handle(request);
  }

  private async current(): Promise<Identity> {
    const identity = await (this.loading ??= this.reload());
    if (
      identity.providerIds.length >= this.providerCount ||
      this.nowMs() < this.loadedMs + retryAfterMs
    )
      return identity;
    this.loading = undefined;
    return (this.loading ??= this.reload());
  }

  private reload(): Promise<Identity> {
    this.loadedMs = this.nowMs();
    const loading = this.load();
    loading.catch(() => {
      this.loading = undefined;
    });
    return loading;
  }
}
