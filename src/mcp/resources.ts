import type { Resource, Server } from "@modelcontextprotocol/server";
import { z } from "zod";
import { brand } from "../platform/kernel/brand.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { conceptDocument, conceptsFor } from "./okf/concepts.ts";
import { modelSchema } from "./tools/models.ts";
import type { McpSdk, ToolContext } from "./tool.ts";

/** Resources of a page of `resources/list`. */
const pageSize = 200;
/** The most values of one completion (MCP, "Completion"). */
const completionsMax = 100;

const scheme = brand.productName.toLowerCase();

/** A kind of resource: how to list its resources, and to read one by its id. */
interface ResourceKind {
  title: string;
  description: string;
  mimeType: string;
  list(context: ToolContext): Promise<{ id: string; title: string; description?: string }[]>;
  /** Returns the text of one; undefined where the caller sees none with this id. */
  read(context: ToolContext, id: string): Promise<string | undefined>;
}

const catalogSchema = z.looseObject({
  data: z.array(
    modelSchema.extend({ display_name: z.string(), description: z.string().optional() }),
  ),
});

const models: ResourceKind = {
  title: "Model",
  description:
    "A model of the catalog with its prices, context, capabilities and providers, as in GET /models.",
  mimeType: "application/json",
  async list({ ask }) {
    const { data } = catalogSchema.parse(
      await ask({ endpoint: "GET /models", query: { presets: "0" } }),
    );
    return data.map(({ id, display_name: title, description }) => ({
      id,
      title,
      ...(description === undefined ? {} : { description }),
    }));
  },
  async read({ ask }, id) {
    try {
      return JSON.stringify(
        await ask({ endpoint: "GET /models/:id", params: { id } }),
        undefined,
        2,
      );
    } catch (error) {
      if (error instanceof GatewayError && error.status === 404) return undefined;
      throw error;
    }
  },
};

const concepts: ResourceKind = {
  title: "Concept",
  description:
    "A document (Open Knowledge Format) about this service's models, providers, endpoints, errors and terms.",
  mimeType: "text/markdown",
  async list(context) {
    return (await conceptsFor(context)).map(({ id, title, description }) => ({
      id,
      title,
      description,
    }));
  },
  async read(context, id) {
    const concept = (await conceptsFor(context)).find((each) => each.id === id);
    return concept && conceptDocument(concept);
  },
};

/**
 * The kinds by their place in URIs. Both are what tools without a scope show, so every credential
 * may read them.
 */
const kinds: Readonly<Record<string, ResourceKind>> = { models, concepts };

const templateOf = (place: string): string => `${scheme}://${place}/{+id}`;
const uriOf = (place: string, id: string): string => `${scheme}://${place}/${encodeURI(id)}`;

/** Returns the kind and the id of a URI; undefined for any other URI. */
function parseUri(uri: string): { kind: ResourceKind; id: string } | undefined {
  const [, place = "", encoded = ""] =
    new RegExp(`^${scheme}://([a-z]+)/(.{1,400})$`).exec(uri) ?? [];
  const kind = Object.hasOwn(kinds, place) ? kinds[place] : undefined;
  try {
    return kind && { kind, id: decodeURI(encoded) };
  } catch {
    return undefined;
  }
}

/** Returns every resource that a caller sees. */
async function listAll(context: ToolContext): Promise<Resource[]> {
  const lists = await Promise.all(
    Object.entries(kinds).map(async ([place, { list, mimeType }]) =>
      (await list(context)).map(({ id, ...shown }) => ({
        uri: uriOf(place, id),
        name: id,
        mimeType,
        ...shown,
      })),
    ),
  );
  return lists.flat();
}

/** Returns ids that complete what was typed, those that begin with it first. */
function completions(
  ids: readonly string[],
  typed: string,
): { values: string[]; total: number; hasMore: boolean } {
  const lower = typed.toLowerCase();
  const found = ids.filter((id) => id.toLowerCase().includes(lower));
  const beginning = found.filter((id) => id.toLowerCase().startsWith(lower));
  const all = [...beginning, ...found.filter((id) => !beginning.includes(id))];
  return {
    values: all.slice(0, completionsMax),
    total: all.length,
    hasMore: all.length > completionsMax,
  };
}

const noCompletions = { values: [], total: 0, hasMore: false };

/** Serves resources, and completes their ids. */
export function serveResources(
  server: Server,
  {
    sdk: { ProtocolError, ProtocolErrorCode, ResourceNotFoundError },
    tools,
  }: { sdk: McpSdk; tools: ToolContext },
): void {
  server.setRequestHandler("resources/list", async ({ params }) => {
    const from = params?.cursor === undefined ? 0 : Number(params.cursor);
    if (!Number.isSafeInteger(from) || from < 0) {
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        "cursor: is none that resources/list gave. Start without one.",
      );
    }
    const all = await listAll(tools);
    const next = from + pageSize;
    return {
      resources: all.slice(from, next),
      ...(next < all.length ? { nextCursor: String(next) } : {}),
    };
  });
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: Object.entries(kinds).map(([place, { title, description, mimeType }]) => ({
      uriTemplate: templateOf(place),
      name: place,
      title,
      description,
      mimeType,
    })),
  }));
  server.setRequestHandler("resources/read", async ({ params: { uri } }) => {
    const found = parseUri(uri);
    const text = await found?.kind.read(tools, found.id);
    if (found === undefined || text === undefined) {
      throw new ResourceNotFoundError(
        uri,
        `There is no resource ${uri}. resources/list lists them.`,
      );
    }
    return { contents: [{ uri, mimeType: found.kind.mimeType, text }] };
  });
  server.setRequestHandler("completion/complete", async ({ params: { ref, argument } }) => {
    // Prompts of the workspace take no arguments.
    if (ref.type !== "ref/resource" || argument.name !== "id") return { completion: noCompletions };
    const kind = Object.entries(kinds).find(([place]) => templateOf(place) === ref.uri)?.[1];
    if (kind === undefined) {
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `There is no template ${ref.uri}. resources/templates/list lists them.`,
      );
    }
    return {
      completion: completions(
        (await kind.list(tools)).map(({ id }) => id),
        argument.value,
      ),
    };
  });
}
