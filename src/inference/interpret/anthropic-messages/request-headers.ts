import { versionDefault } from "../../dialects/anthropic-messages/anthropic-messages.ts";

/**
 * Headers that a Messages upstream wants beside its credential: the version and the betas of the client's
 * own headers, where the client speaks Messages too.
 */
export function requestHeaders(
  dialectHeaders: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const { "anthropic-version": version = versionDefault, "anthropic-beta": beta } = dialectHeaders;
  return { "anthropic-version": version, ...(beta !== undefined && { "anthropic-beta": beta }) };
}
