import { z } from "zod";
import type { Scope } from "../identity/keys/scopes.ts";
import { checkBody, refuseUnknownFields } from "../http/check-body.ts";
import type { InnerAnswer, InnerCall } from "../http/inner-call.ts";
import type { Endpoint } from "../access/define-endpoint.ts";

/** What tools know of a REST endpoint: its declaration, and not its handler. */
export type ToolEndpoint = Pick<
  Endpoint<never>,
  | "method"
  | "path"
  | "base"
  | "access"
  | "counting"
  | "tag"
  | "summary"
  | "description"
  | "query"
  | "body"
  | "response"
>;

/** The name of an endpoint, such as `GET /keys/:hash`. */
export const endpointName = ({ method, path }: Pick<ToolEndpoint, "method" | "path">): string =>
  `${method} ${path}`;

/** The SDK of the protocol, which is loaded when the first client comes. */
export type McpSdk = typeof import("@modelcontextprotocol/server");

/**
 * What a tool call may use. Everything about accounts goes through `ask`, so that a tool can do
 * what the REST API allows, and no more.
 */
export interface ToolContext {
  /**
   * Calls a REST endpoint for the caller and gives its body. Throws the `GatewayError` that refuses
   * it.
   */
  ask(call: InnerCall): Promise<unknown>;
  /** The same with the status of the answer. */
  request(call: InnerCall): Promise<InnerAnswer>;
  /** Wall time in milliseconds. */
  nowMs(): number;
  /** Endpoints of the REST API. */
  endpoints: readonly ToolEndpoint[];
}

/**
 * What a call does to the account: `nothing` reads, `adds` makes something new, `destroys` ends or
 * changes what was there.
 */
type ToolEffect = "nothing" | "adds" | "destroys";

interface ToolFacts {
  /** Name on the wire. */
  name: string;
  /** Name for people. */
  title: string;
  description: string;
  /**
   * Scope that management keys and connected apps need; null where any credential may call the
   * tool. LLM keys hold no scopes.
   */
  scope: Scope | null;
  /** For operators of the service alone; others neither see nor call it. */
  operators?: true;
  effect: ToolEffect;
  /**
   * The REST endpoint that the tool corresponds to, such as `GET /keys`. The result has its schema
   * unless `output` says otherwise.
   */
  endpoint?: string;
  /** Schema of the result, where it is not that of `endpoint`. An object, as MCP wants it. */
  output?: z.ZodType;
}

/** A tool as the registry holds it. */
export interface Tool extends ToolFacts {
  input: z.ZodObject;
  /**
   * Checks the arguments and does the work. Throws `bad_request` naming the argument that is wrong.
   */
  call(given: Readonly<Record<string, unknown>>, context: ToolContext): Promise<unknown>;
}

/**
 * The argument by which a client names a call that makes or ends something, beside the header of
 * the same meaning.
 */
export const idempotencyField = {
  idempotency_key: z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, "must be 1 to 255 printable ASCII characters, such as a UUID")
    .optional()
    .describe(
      "A name for this call, such as a UUID: called again with it, the tool answers the same and does nothing more.",
    ),
};

/** Declares a tool; `tools/index.ts` lists them all. */
export const defineTool = <Arguments>({
  run,
  ...tool
}: ToolFacts & {
  input: z.ZodObject & z.ZodType<Arguments>;
  run(given: Arguments, context: ToolContext): Promise<unknown>;
}): Tool => ({
  ...tool,
  async call(given, context) {
    refuseUnknownFields(tool.input, given);
    return await run(checkBody(tool.input, given), context);
  },
});
