/** Signs people in with passwords, passkeys and OIDC providers, on the routes of better-auth. */
export interface Identity {
  /** Answers a request to one of its routes, below `identityPath`. */
  handle(request: Request): Promise<Response>;
  /** Ids of the OIDC providers that could be reached. */
  providerIds: readonly string[];
}

/** The path of the library's routes. Only those that the endpoint table names are served. */
export const identityPath = "/api/auth";

/**
 * The header that passes the client's address to the library. A header of this name from a client
 * is dropped.
 */
export const clientAddressHeader = "x-switchyard-client-address";

/** An OIDC provider of the configuration. */
export interface OidcProvider {
  /** The slug, which is part of the callback's path. */
  id: string;
  name: string;
  /** The issuer, below which `/.well-known/openid-configuration` is looked up. */
  issuer: string;
  clientId: string;
  /** Absent for public clients, which authenticate by PKCE alone. */
  clientSecret: string | undefined;
  scopes: readonly string[];
  /**
   * Whether every person who signs in here gets an account. Otherwise they need an invitation or
   * the policy `open`.
   */
  signUp: boolean;
}

/** Milliseconds to wait before a provider that could not be reached is tried again. */
const retryAfterMs = 30_000;

/**
 * Loads the sign-in library on its first use, since that takes longer than the rest of the start.
 * Providers are read then, so one that was down is tried again later.
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
