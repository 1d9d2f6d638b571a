import { exposedNames } from "../exposed-tools.ts";
import type { UpstreamServer } from "../upstream-server.ts";

/** What begins the URI of a resource where servers are joined. It is a scheme with the rest (RFC 3986). */
const joinedScheme = "mcp";

/** A URI of a joined server. Ids of servers have no `+`, so where the id ends is never in doubt. */
const joinedUri = /^mcp\+([a-z0-9-]+)\+([^]+)$/;

/** Returns the URI of a server's resource, or of a template, where servers are joined. */
export const joinedUriOf = ({ id }: Pick<UpstreamServer, "id">, uri: string): string =>
  `${joinedScheme}+${id}+${uri}`;

/** Returns the server that a joined URI names, and the server's own URI; undefined for any other. */
export function partsOfJoinedUri(uri: string): { serverId: string; uri: string } | undefined {
  const [, serverId, own] = joinedUri.exec(uri) ?? [];
  return serverId === undefined || own === undefined ? undefined : { serverId, uri: own };
}

/** Returns content with the URI under which an agent of joined servers finds a resource again. */
export function joinedContent<Content extends { type: string }>(
  server: Pick<UpstreamServer, "id">,
  content: Content,
): Content {
  const { uri, resource } = content as { uri?: unknown; resource?: { uri?: unknown } };
  if (content.type === "resource_link" && typeof uri === "string")
    return { ...content, uri: joinedUriOf(server, uri) };
  if (content.type === "resource" && typeof resource?.uri === "string")
    return { ...content, resource: { ...resource, uri: joinedUriOf(server, resource.uri) } };
  return content;
}

/** What each of several servers listed. */
export type ListedOf<Entry> = readonly {
  server: UpstreamServer;
  entries: readonly Entry[];
}[];

/** Returns the prompts of joined servers by their exposed names, made as those of tools are. */
export function joinedPrompts<Prompt extends { name: string }>(
  listed: ListedOf<Prompt>,
): ReadonlyMap<string, { server: UpstreamServer; prompt: Prompt }> {
  return exposedNames(
    listed.flatMap(({ server, entries }) =>
      entries.map((prompt) => ({
        serverId: server.id,
        name: prompt.name,
        value: { server, prompt },
      })),
    ),
    { prefixed: true },
  );
}
