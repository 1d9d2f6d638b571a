import { z } from "zod";
import type { Scope } from "../identity/keys/scopes.ts";
import { checkBody, refuseUnknownFields } from "../http/bodies/check-body.ts";
import type { Endpoint } from "../access/define-endpoint.ts";
import type { InnerCall, InnerAnswer } from "../http/request-context.ts";

/** A REST endpoint as tools know it: its declaration, without its handler. */
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

/** Returns the name of an endpoint, such as `GET /keys/:hash`. */
export const endpointName = ({ method, path }: Pick<ToolEndpoint, "method" | "path">): string =>
  `${method} ${path}`;

/** The SDK of the protocol, which is loaded when the first client connects. */
export type McpSdk = typeof import("@modelcontextprotocol/server");

/**
 * The functions that a tool call may use. Everything about accounts goes through `ask`, so that a
 * tool can do what the REST API allows, and no more.
 */
export interface ToolContext {
  /**
   * Calls a REST endpoint for the caller and returns its body. Throws the `GatewayError` that
   * refuses it.
   */
  ask(call: InnerCall): Promise<unknown>;
  /** Does the same, and returns the status as well. */
  request(call: InnerCall): Promise<InnerAnswer>;
  /** Returns the wall time in milliseconds. */
  nowMs(): number;
  /** The endpoints of the REST API. */
  endpoints: readonly ToolEndpoint[];
}

/**
 * The effect of a call on the account: `nothing` reads, `adds` creates something, `destroys` ends
 * or changes something.
 */
type ToolEffect = "nothing" | "adds" | "destroys";

interface ToolFacts {
  /** The name on the wire. */
  name: string;
  /** The name for people. */
  title: string;
  description: string;
  /**
   * The scope that management keys and connected apps need; null where any credential may call the
   * tool. LLM keys have no scopes, and may call tools of `inference`.
   */
  scope: Scope | null;
  /** Whether only operators of the service may see and call it. */
  operators?: true;
  effect: ToolEffect;
  /**
   * The REST endpoint that the tool corresponds to, such as `GET /keys`. The result has its schema
   * unless `output` is given.
   */
  endpoint?: string;
  /**
   * The schema of the result, where it differs from that of `endpoint`. It has to be an object, as
   * MCP requires.
   */
  output?: z.ZodType;
}

/** A tool in the registry. */
export interface Tool extends ToolFacts {
  input: z.ZodObject;
  /**
   * Checks the arguments and runs the tool. Throws `bad_request` that names the invalid argument.
   */
  call(given: Readonly<Record<string, unknown>>, context: ToolContext): Promise<unknown>;
}

/**
 * The argument with which a client identifies a call that creates or ends something, like the
 * header of the same meaning.
 */
export const idempotencyField = {
  idempotency_key: z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, "must be 1 to 255 printable ASCII characters, such as a UUID")
    .optional()
    .describe(
      "Idempotency key of this call, such as a UUID. A repeated call with the same key returns the same result and does nothing " +
        "more.",
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
