import {
  firstSet,
  type Environment,
  type ProviderDefinition,
} from "../providers/provider-definition.ts";
import type { CredentialHeader, Provider, UpstreamTimeouts } from "./model.ts";
import { present } from "./present.ts";

/** `Authorization: Bearer <credential>`, as nearly every vendor has it (RFC 6750). */
export const bearerHeader: CredentialHeader = { name: "authorization", prefix: "Bearer " };

/**
 * A connection takes a round trip or two; a minute without a token, or between two, means that nothing
 * comes any more; ten minutes end what no client waits for.
 */
export const defaultTimeouts: UpstreamTimeouts = {
  connectMs: 5_000,
  firstTokenMs: 60_000,
  idleMs: 60_000,
  totalMs: 600_000,
};

/** A built-in provider in this environment: with its address and the platform's credential, if there are. */
export function knownProvider(definition: ProviderDefinition, environment: Environment): Provider {
  const { baseUrl, local } = definition;
  const apiKey = firstSet(environment, definition.credentialVariables) ?? (local ? "" : undefined);
  return present({
    id: definition.id,
    name: definition.name,
    description: definition.description,
    website: definition.website,
    baseUrl: typeof baseUrl === "string" ? baseUrl : baseUrl(environment),
    surfaceBaseUrls: definition.surfaceBaseUrls,
    dialectBaseUrls: definition.dialectBaseUrls?.(environment),
    dialects: definition.dialects,
    credentialHeader: definition.credentialHeader ?? bearerHeader,
    apiKey,
    signing: apiKey === undefined ? definition.signing?.(environment) : undefined,
    headers: definition.headers,
    dataPolicy: definition.dataPolicy ?? {},
    timeouts: defaultTimeouts,
    quirks: definition.quirks ?? {},
    local,
  });
}
