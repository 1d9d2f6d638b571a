import type {
  Client,
  CompleteRequestParams,
  CompleteResult,
  GetPromptResult,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplateType,
} from "@modelcontextprotocol/client";
import type { Clock } from "../../platform/kernel/clock.ts";
import { answerMs } from "./agents/held-calls.ts";
import type { Listener, ServerConnections } from "./server-connections.ts";
import { type ServerUser, storageKeyOf, type UpstreamServer } from "./upstream-server.ts";

/** What a server lists beside its tools. */
export interface ListedContents {
  prompts: readonly Prompt[];
  resources: readonly Resource[];
  templates: readonly ResourceTemplateType[];
}

/** Milliseconds for which a list is kept. */
const listMs = 60_000;

/** Milliseconds that a server may take for a list, with all its pages, or for a completion. */
const readMs = 10_000;

/** The most entries of one list, the most lists that are kept, and the most characters of one. */
const entriesMax = 1_000;
const listsMax = 1_000;
const keptCharactersMax = 1024 * 1024;

interface KeptList {
  entries: unknown;
  untilMs: number;
}

/** Who asks a server, and how long for. */
interface Asked {
  server: UpstreamServer;
  user: ServerUser;
  signal: AbortSignal;
  /** Hears what the server asks; absent where it may ask nothing. */
  listener?: Listener | undefined;
}

/** Thrown where a server answers with more than its operator allows. */
class ContentTooLargeError extends Error {
  constructor(bytesMax: number) {
    super(`The answer is larger than ${bytesMax} bytes (result_bytes_max of the server).`);
  }
}

/** Returns the milliseconds that a server may take, with the time that the agent has for answers. */
const timeoutOf = ({ timeoutMs }: UpstreamServer, listener: Listener | undefined): number =>
  timeoutMs + (Object.keys(listener?.capabilities ?? {}).length > 0 ? answerMs : 0);

function capped<Result>(result: Result, { resultBytesMax }: UpstreamServer): Result {
  if (Buffer.byteLength(JSON.stringify(result)) > resultBytesMax)
    throw new ContentTooLargeError(resultBytesMax);
  return result;
}

/** Reads one kind of list of a server; a server without the capability has an empty one. */
const readers: {
  [Kind in keyof ListedContents]: (
    client: Client,
    options: { timeout: number; signal: AbortSignal; cacheMode: "refresh" },
  ) => Promise<ListedContents[Kind]>;
} = {
  prompts: async (client, options) =>
    client.getServerCapabilities()?.prompts === undefined
      ? []
      : (await client.listPrompts(undefined, options)).prompts,
  resources: async (client, options) =>
    client.getServerCapabilities()?.resources === undefined
      ? []
      : (await client.listResources(undefined, options)).resources,
  templates: async (client, options) =>
    client.getServerCapabilities()?.resources === undefined
      ? []
      : (await client.listResourceTemplates(undefined, options)).resourceTemplates,
};

/**
 * The prompts and resources of upstream servers. Lists are kept for a minute for the session that
 * they were read in, since servers may show each person other ones.
 */
export class UpstreamContents {
  private readonly connections: Pick<ServerConnections, "use">;
  private readonly clock: Pick<Clock, "monotonicMs">;
  private readonly kept = new Map<string, KeptList>();

  constructor(options: {
    connections: Pick<ServerConnections, "use">;
    clock: Pick<Clock, "monotonicMs">;
  }) {
    this.connections = options.connections;
    this.clock = options.clock;
  }

  /** Returns a list of a server. Throws where it does not answer. */
  async list<Kind extends keyof ListedContents>(
    kind: Kind,
    { server, user }: Pick<Asked, "server" | "user">,
  ): Promise<ListedContents[Kind]> {
    const key = JSON.stringify([storageKeyOf(server), server.updatedAtMs, user.session, kind]);
    const found = this.kept.get(key);
    if (found !== undefined && found.untilMs > this.clock.monotonicMs())
      return found.entries as ListedContents[Kind];
    const signal = AbortSignal.timeout(readMs);
    const entries = await this.connections.use(server, user, (client) =>
      readers[kind](client, { timeout: readMs, signal, cacheMode: "refresh" }),
    );
    const first = entries.slice(0, entriesMax) as unknown as ListedContents[Kind];
    this.keep(key, first);
    return first;
  }

  /** Drops the lists that were kept of a server. */
  forget(server: Pick<UpstreamServer, "id" | "workspaceId">): void {
    const beginning = JSON.stringify([storageKeyOf(server)]).slice(0, -1);
    for (const key of this.kept.keys()) if (key.startsWith(`${beginning},`)) this.kept.delete(key);
  }

  /** Returns a prompt with its arguments filled in. */
  async getPrompt(
    { server, user, signal, listener }: Asked,
    params: { name: string; arguments?: Record<string, string> | undefined },
  ): Promise<GetPromptResult> {
    const { name, arguments: given } = params;
    const timeout = timeoutOf(server, listener);
    const options = { signal, timeout, maxTotalTimeout: timeout };
    const work = (client: Client) =>
      client.getPrompt({ name, ...(given !== undefined && { arguments: given }) }, options);
    const result = await this.connections.use(server, user, work, listener);
    return capped(result as GetPromptResult, server);
  }

  /** Reads a resource. */
  async readResource(
    { server, user, signal, listener }: Asked,
    uri: string,
  ): Promise<ReadResourceResult> {
    const timeout = timeoutOf(server, listener);
    const options = { signal, timeout, maxTotalTimeout: timeout, cacheMode: "bypass" as const };
    const work = (client: Client) => client.readResource({ uri }, options);
    const result = await this.connections.use(server, user, work, listener);
    return capped(result as ReadResourceResult, server);
  }

  /** Completes an argument of a prompt or of a template; servers without completions have none. */
  complete(
    { server, user, signal }: Asked,
    params: Pick<CompleteRequestParams, "ref" | "argument" | "context">,
  ): Promise<CompleteResult> {
    return this.connections.use(server, user, async (client) =>
      client.getServerCapabilities()?.completions === undefined
        ? { completion: { values: [] } }
        : client.complete(params, { signal, timeout: readMs, maxTotalTimeout: readMs }),
    );
  }

  private keep(key: string, entries: readonly unknown[]): void {
    if (JSON.stringify(entries).length > keptCharactersMax) return;
    this.kept.delete(key);
    this.kept.set(key, { entries, untilMs: this.clock.monotonicMs() + listMs });
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= listsMax) return;
      this.kept.delete(oldest);
    }
  }
}
