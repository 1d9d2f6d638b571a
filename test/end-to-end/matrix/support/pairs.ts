import type { ScriptedDialect as DialectId } from "../../../support/scripted-upstream/scripted-upstream.ts";
import { chatClient } from "./chat-client.ts";
import { googleClient } from "./google-client.ts";
import type { AnyClientName, ClientDialect, ClientName } from "./client-dialect.ts";
import { messagesClient } from "./messages-client.ts";
import { responsesClient } from "./responses-client.ts";

/** Every dialect of clients. */
export const clients: readonly ClientDialect<ClientName>[] = [
  chatClient,
  messagesClient,
  responsesClient,
];

/** Every dialect of clients, Google's among them. */
export const allClients: readonly ClientDialect[] = [...clients, googleClient];

/** Every dialect of upstreams. */
export const upstreams: readonly DialectId[] = [
  "openai-chat",
  "anthropic-messages",
  "openai-responses",
  "google-generate",
];

/** A client's dialect and the upstream's that it meets. */
export interface Pair<Name extends AnyClientName = AnyClientName> {
  client: ClientDialect<Name>;
  upstream: DialectId;
}

/** The four pairs of Google's client. */
const googlePairs: readonly Pair[] = upstreams.map((upstream) => ({
  client: googleClient,
  upstream,
}));

/** The twelve pairs of the tables. */
export const pairs: readonly Pair<ClientName>[] = clients.flatMap((client) =>
  upstreams.map((upstream) => ({ client, upstream })),
);

/** The sixteen pairs of all clients. */
export const allPairs: readonly Pair[] = [...pairs, ...googlePairs];

/** How a test names a pair. */
export const nameOf = ({ client, upstream }: Pair): string => `${client.name} -> ${upstream}`;

const byName = {
  "openai-chat": chatClient,
  "anthropic-messages": messagesClient,
  "openai-responses": responsesClient,
  "google-generate": googleClient,
} as const satisfies { [Name in AnyClientName]: ClientDialect<Name> };

/** Returns the client of a dialect. */
export const clientOf = <Name extends AnyClientName>(name: Name): (typeof byName)[Name] =>
  byName[name];
