/**
 * Every name that carries the service's brand on the wire. An operator who renames the service
 * changes this one module.
 */
export const brand = {
  /** Product name for people: terminal lines and documentation pages. */
  productName: "Switchyard",
  /** Prefix of response headers, without the trailing dash. */
  headerPrefix: "X-Service",
  /** Owner part of first-party routing model ids, such as `service/auto`. */
  routerOwner: "service",
  /** Prefix of LLM key secrets. */
  llmKeyPrefix: "sk-svc-v1-",
  /** Prefix that distinguishes an LLM key of any version from other credentials. */
  llmKeyFamilyPrefix: "sk-svc-",
  /**
   * Prefix of access tokens of connected apps; of the LLM keys' family, so that secret scanners
   * know them.
   */
  accessTokenPrefix: "sk-svc-at-",
  /** Prefix of refresh tokens. They open nothing but the token endpoint. */
  refreshTokenPrefix: "sk-svc-rt-",
  /** Prefix of management key secrets as they are minted. */
  managementKeyPrefix: "ak_live_",
  /** Prefix that distinguishes a management key from other credentials. */
  managementKeyFamilyPrefix: "ak_",
  /** Key of the metadata object on response bodies and final stream frames. */
  metadataKey: "service_metadata",
  /** Event that carries it after the last event of a Responses stream. */
  metadataEvent: "response.service.metadata",
  /** Cookie that carries a dashboard session. */
  sessionCookie: "__session",
} as const;

/** Response header name under the brand's prefix, such as `X-Service-Model`. */
export const brandHeader = (name: string): string => `${brand.headerPrefix}-${name}`;

/** The same in lower case, as answers gather their headers. */
export const lowerBrandHeader = (name: string): string => brandHeader(name).toLowerCase();
