import type { Server, ServerContext } from "@modelcontextprotocol/server";
import type { McpSdk } from "../../tool.ts";
import { mayUseWhole, type ReadServer } from "../exposed-tools.ts";
import { isNotConnected } from "../oauth/grants.ts";
import type { Listener } from "../server-connections.ts";
import { userOf } from "../tool-calls.ts";
import type { ListedContents, UpstreamContents } from "../upstream-contents.ts";
import type { UpstreamServer } from "../upstream-server.ts";
import { failureText } from "../upstream-servers.ts";
import { type AgentRequest, serversMetaKey, stateOf } from "./agent-request.ts";
import {
  joinedContent,
  joinedPrompts,
  joinedUriOf,
  type ListedOf,
  partsOfJoinedUri,
} from "./exposed-contents.ts";
import type { Rendered } from "./held-call.ts";

/** A place of a prompt or a resource: its server, and what the server itself calls it. */
interface Place {
  server: UpstreamServer;
  own: string;
}

/** What answers need: the SDK, the request, and where servers are read. */
interface ContentParts {
  sdk: McpSdk;
  request: AgentRequest;
  contents: UpstreamContents;
  /** Asks a server something during which it may ask the agent; `name` says what it is. */
  ask: AskServer;
}

/** What a server is asked with: until when, and who can be asked. */
interface AskedWith {
  signal: AbortSignal;
  listener: Listener;
}

type AskServer = (
  context: ServerContext,
  asked: { name: string; work(asked: AskedWith): Promise<Rendered> },
) => Promise<never>;

/** The prompts and resources of upstream servers, as one request of an agent may see them. */
class AgentContents {
  /** The servers that the request may use as a whole. */
  private readonly usable: readonly ReadServer[];

  constructor(private readonly parts: ContentParts) {
    const { servers, limits } = parts.request;
    this.usable = servers.filter(({ server }) => mayUseWhole(server, limits));
  }

  /**
   * Reads one kind of list of every server at once. Those that do not answer are named with their
   * state, and the others are listed.
   */
  async listed<Kind extends keyof ListedContents>(kind: Kind) {
    const { request, contents } = this.parts;
    const user = userOf(request.caller);
    const read = await Promise.all(
      this.usable.map(async (each) => {
        if (each.error !== null || each.needsConnection)
          return { server: each.server, entries: [], state: stateOf(each) };
        try {
          const entries = await contents.list(kind, { server: each.server, user });
          return { server: each.server, entries, state: stateOf(each) };
        } catch (error) {
          const state = stateOf({ ...each, error: failureText(error) });
          return { server: each.server, entries: [], state };
        }
      }),
    );
    return {
      lists: read as ListedOf<ListedContents[Kind][number]>,
      _meta: { [serversMetaKey]: read.map(({ state }) => state) },
    };
  }

  /** Finds a prompt by its exposed name. Throws for one that the request may not see. */
  async promptAt(name: string): Promise<Place> {
    const [only] = this.usable;
    if (!this.parts.request.joined && only !== undefined) return { server: only.server, own: name };
    const found = joinedPrompts((await this.listed("prompts")).lists).get(name);
    if (found !== undefined) return { server: found.server, own: found.prompt.name };
    throw this.unknown(`There is no prompt ${name} here. prompts/list lists them.`);
  }

  /** Finds a resource, or a template, by its exposed URI. Throws for one that may not be seen. */
  resourceAt(uri: string): Place {
    const { sdk, request } = this.parts;
    const parts = request.joined ? partsOfJoinedUri(uri) : { serverId: undefined, uri };
    const found = this.usable.find(
      ({ server }) => parts?.serverId === undefined || server.id === parts.serverId,
    );
    if (parts !== undefined && found !== undefined) return { server: found.server, own: parts.uri };
    const message = `There is no resource ${uri} here. resources/list lists them.`;
    throw new sdk.ResourceNotFoundError(uri, message);
  }

  /** Asks a server, whose refusals are passed on. */
  async ask<Result>(
    { server }: Place,
    asked: Partial<AskedWith> & Pick<AskedWith, "signal">,
    work: (asked: Parameters<UpstreamContents["readResource"]>[0]) => Promise<Result>,
  ): Promise<Result> {
    const { sdk, request } = this.parts;
    const user = userOf(request.caller);
    try {
      return await work({ server, user, ...asked });
    } catch (error) {
      const { code } = Object(error) as { code?: unknown };
      const text = isNotConnected(error)
        ? `${server.name} is not connected yet. Call one of its tools, whose answer is the link to do so.`
        : failureText(error);
      if (typeof code === "number") throw new sdk.ProtocolError(code, text);
      const message = `The server did not answer: ${text}`;
      throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InternalError, message);
    }
  }

  private unknown(message: string): Error {
    const { sdk } = this.parts;
    return new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, message);
  }
}

/** Serves `prompts/list` and `prompts/get`. */
function servePrompts(
  server: Server,
  found: AgentContents,
  { request, contents, ask }: ContentParts,
) {
  const { joined } = request;
  server.setRequestHandler("prompts/list", async () => {
    const { lists, _meta } = await found.listed("prompts");
    const prompts = joined
      ? [...joinedPrompts(lists)].map(([name, { prompt }]) => ({ ...prompt, name }))
      : lists.flatMap(({ entries }) => entries);
    return { prompts, _meta };
  });
  server.setRequestHandler("prompts/get", async ({ params }, context) => {
    const place = await found.promptAt(params.name);
    const work = async (asked: AskedWith) => {
      const result = await found.ask(place, asked, (each) =>
        contents.getPrompt(each, { name: place.own, arguments: params.arguments }),
      );
      if (!joined) return { ...result };
      const messages = result.messages.map((message) => ({
        ...message,
        content: joinedContent(place.server, message.content),
      }));
      return { ...result, messages };
    };
    return ask(context, { name: `prompts/get ${params.name}`, work });
  });
}

/** Serves `resources/list`, `resources/templates/list` and `resources/read`. */
function serveResources(
  server: Server,
  found: AgentContents,
  { request, contents, ask }: ContentParts,
) {
  const uriOf = (from: UpstreamServer, uri: string): string =>
    request.joined ? joinedUriOf(from, uri) : uri;
  server.setRequestHandler("resources/list", async () => {
    const { lists, _meta } = await found.listed("resources");
    const resources = lists.flatMap(({ server: from, entries }) =>
      entries.map((each) => ({ ...each, uri: uriOf(from, each.uri) })),
    );
    return { resources, _meta };
  });
  server.setRequestHandler("resources/templates/list", async () => {
    const { lists, _meta } = await found.listed("templates");
    const resourceTemplates = lists.flatMap(({ server: from, entries }) =>
      entries.map((each) => ({ ...each, uriTemplate: uriOf(from, each.uriTemplate) })),
    );
    return { resourceTemplates, _meta };
  });
  server.setRequestHandler("resources/read", async ({ params: { uri } }, context) => {
    const place = found.resourceAt(uri);
    const work = async (asked: AskedWith) => {
      const result = await found.ask(place, asked, (each) =>
        contents.readResource(each, place.own),
      );
      const read = result.contents.map((each) => ({ ...each, uri: uriOf(place.server, each.uri) }));
      return { ...result, contents: read };
    };
    return ask(context, { name: `resources/read ${uri}`, work });
  });
}

/** Serves the prompts and resources of upstream servers, and completes their arguments. */
export function serveContents(server: Server, parts: ContentParts): void {
  const found = new AgentContents(parts);
  servePrompts(server, found, parts);
  serveResources(server, found, parts);
  server.setRequestHandler("completion/complete", async ({ params }, context) => {
    const { ref, argument, context: filled } = params;
    const place =
      ref.type === "ref/prompt" ? await found.promptAt(ref.name) : found.resourceAt(ref.uri);
    const own =
      ref.type === "ref/prompt"
        ? { type: ref.type, name: place.own }
        : { type: ref.type, uri: place.own };
    return found.ask(place, { signal: context.mcpReq.signal }, (asked) =>
      parts.contents.complete(asked, {
        ref: own,
        argument,
        ...(filled !== undefined && { context: filled }),
      }),
    );
  });
}
