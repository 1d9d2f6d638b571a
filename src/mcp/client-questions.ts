import type {
  JSONRPCMessage,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { type JsonFields, fieldsOf } from "../platform/kernel/json/json-members.ts";

/** The header of sessions (MCP up to 2025-11-25, "Session Management"). */
export const sessionHeader = "mcp-session-id";

/** What begins the name of a session; the rest is what its client declared. */
const sessionPrefix = "client.";

/** The most characters of such a name. */
const sessionCharactersMax = 2_000;

/** The capabilities that let servers ask the client. */
const askedNames = ["elicitation", "sampling", "roots"] as const;

/**
 * Returns the session that answers an `initialize` request of a client that can be asked; undefined
 * for every other request. Its name holds what the client declared, so that any gateway knows it.
 * It gives no right to anything.
 */
export function sessionOf(body: unknown): string | undefined {
  const { method, params } = fieldsOf(body);
  if (method !== "initialize") return undefined;
  const declared = fieldsOf(fieldsOf(params)["capabilities"]);
  const capabilities = Object.fromEntries(
    askedNames.flatMap((name) => (declared[name] ? [[name, declared[name]]] : [])),
  );
  if (Object.keys(capabilities).length === 0) return undefined;
  const session = sessionPrefix + Buffer.from(JSON.stringify(capabilities)).toString("base64url");
  return session.length > sessionCharactersMax ? undefined : session;
}

/** Returns what the client of a session declared; undefined where there is no such session. */
export function capabilitiesIn(session: string | null): JsonFields | undefined {
  if (session === null || !session.startsWith(sessionPrefix)) return undefined;
  if (session.length > sessionCharactersMax) return undefined;
  try {
    const text = Buffer.from(session.slice(sessionPrefix.length), "base64url").toString("utf8");
    return fieldsOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The id of the request with which a client is introduced to the server of one request. */
const introductionId = "introduction";

/** Tells the server of one request what its client declared when the session began. */
export async function introduce(
  transport: WebStandardStreamableHTTPServerTransport,
  { request, capabilities }: { request: Request; capabilities: JsonFields },
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    if ("id" in message && message.id === introductionId && !("method" in message)) resolve();
    else await send(message, options);
  };
  transport.onmessage?.({
    jsonrpc: "2.0",
    id: introductionId,
    method: "initialize",
    params: {
      protocolVersion: request.headers.get("mcp-protocol-version") ?? "2025-11-25",
      capabilities,
      clientInfo: { name: "client", version: "1" },
    },
  });
  await promise;
}

/** Returns whether a message is a client's answer to a question. */
export function isAnswer(body: unknown): boolean {
  const { id, method } = fieldsOf(body);
  return method === undefined && typeof id === "string";
}

interface Asked {
  clientId: string;
  transport: WebStandardStreamableHTTPServerTransport;
  /** The id by which the server of the request knows its question. */
  id: string | number;
}

/**
 * The questions that are open at clients of the older generation, whose answers come with requests
 * of their own. Each has an id that no other question has, and is answered by its client alone.
 */
export class ClientQuestions {
  private readonly open = new Map<string, Asked>();

  /** Gives questions that a server sends ids of their own, until its request has ended. */
  watch(
    transport: WebStandardStreamableHTTPServerTransport,
    { clientId, signal }: { clientId: string; signal: AbortSignal },
  ): void {
    const send = transport.send.bind(transport);
    const forget = (): void => {
      for (const [name, asked] of this.open)
        if (asked.transport === transport) this.open.delete(name);
    };
    signal.addEventListener("abort", forget);
    transport.send = async (message: JSONRPCMessage, options) => {
      if (!("id" in message) || message.id === undefined) return send(message, options);
      if (!("method" in message)) {
        forget();
        signal.removeEventListener("abort", forget);
        return send(message, options);
      }
      const name = crypto.randomUUID();
      this.open.set(name, { clientId, transport, id: message.id });
      return send({ ...message, id: name }, options);
    };
  }

  /** Passes the answer of a client on. Returns false where it answers no question of this gateway. */
  deliver(clientId: string, body: unknown): boolean {
    const { id } = fieldsOf(body);
    const asked = typeof id === "string" ? this.open.get(id) : undefined;
    if (asked === undefined || typeof id !== "string" || asked.clientId !== clientId) return false;
    this.open.delete(id);
    asked.transport.onmessage?.({ ...fieldsOf(body), id: asked.id } as never);
    return true;
  }
}
