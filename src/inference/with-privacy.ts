import { noPrivacy, type Privacy } from "../account/security/privacy.ts";
import type { ProviderFilter } from "./routing/candidate.ts";

/** What a request asks of providers, with what its workspace and its key demand: each can ask for more, and none for less. */
export function withPrivacy(filter: ProviderFilter, privacy: Privacy): ProviderFilter {
  if (privacy === noPrivacy) return filter;
  return { ...filter, zdr: privacy.zdr || filter.zdr, blocked: privacy.blockedProviders };
}
