/**
 * Every name that carries the service's brand on the wire. An operator who renames the service
 * changes only this module.
 */
export const brand = {
  /** The product's name for people: terminal lines and documentation pages. */
  productName: "Switchyard",
  /** The prefix of response headers, without the trailing dash. */
  headerPrefix: "X-Service",
  /** The owner part of first-party routing model ids, such as `service/auto`. */
  routerOwner: "service",
  /** The prefix of LLM key secrets. */
  llmKeyPrefix: "sk-svc-v1-",
  /** The prefix that distinguishes an LLM key of any version from other credentials. */
  llmKeyFamilyPrefix: "sk-svc-",
  /**
   * The prefix of access tokens of connected apps. It is of the LLM keys' family, so that secret
   * scanners recognise it.
   */
  accessTokenPrefix: "sk-svc-at-",
  /** The prefix of refresh tokens, which are accepted only at the token endpoint. */
  refreshTokenPrefix: "sk-svc-rt-",
  /** The prefix of new management key secrets. */
  managementKeyPrefix: "ak_live_",
  /** The prefix that distinguishes a management key from other credentials. */
  managementKeyFamilyPrefix: "ak_",
  /** The key of the metadata object on response bodies and final stream frames. */
  metadataKey: "service_metadata",
  /** The event that carries the metadata after the last event of a Responses stream. */
  metadataEvent: "response.service.metadata",
  /** The cookie that carries a dashboard session. */
  sessionCookie: "__session",
} as const;

/** Returns a response header name under the brand's prefix, such as `X-Service-Model`. */
export const brandHeader = (name: string): string => `${brand.headerPrefix}-${name}`;

/** Returns the same in lower case, as answers collect their headers. */
export const lowerBrandHeader = (name: string): string => brandHeader(name).toLowerCase();
