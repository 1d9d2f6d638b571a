import type { ScriptedDialect as DialectId } from "../../../support/scripted-upstream/scripted-upstream.ts";
import { chatClient } from "./chat-client.ts";
import type { ClientDialect, ClientName } from "./client-dialect.ts";
import { messagesClient } from "./messages-client.ts";
import { responsesClient } from "./responses-client.ts";

/** Every dialect of clients. */
export const clients: readonly ClientDialect[] = [chatClient, messagesClient, responsesClient];

/** Every dialect of upstreams. */
export const upstreams: readonly DialectId[] = [
  "openai-chat",
  "anthropic-messages",
  "openai-responses",
  "google-generate",
];

/** A client's dialect and the upstream's that it meets. */
export interface Pair {
  client: ClientDialect;
  upstream: DialectId;
}

/** The twelve pairs. */
export const pairs: readonly Pair[] = clients.flatMap((client) =>
  upstreams.map((upstream) => ({ client, upstream })),
);

/** How a test names a pair. */
export const nameOf = ({ client, upstream }: Pair): string => `${client.name} -> ${upstream}`;

/** The client of a dialect. */
export const clientOf = (name: ClientName): ClientDialect =>
  clients.find((client) => client.name === name) ?? chatClient;
