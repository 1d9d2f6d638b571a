import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";

const shared = {
  method: "GET" as const,
  base: "root" as const,
  access: { open: true as const },
  counting: "none" as const,
  tag: "Operations",
  encodeError: encodeContractError,
};

export const healthz = defineEndpoint({
  ...shared,
  path: "/healthz",
  summary: "Check that the process is running.",
  response: () => z.object({ status: z.literal("ok") }),
  handle: (context) => context.json({ status: "ok" }),
});

/** Reports whether the process can serve requests: its storage answers and it is not draining. */
export const readyz = defineEndpoint({
  ...shared,
  path: "/readyz",
  summary: "Check that requests can be served.",
  response: () =>
    z.object({
      status: z.literal("ready"),
      unready: z.array(z.string()).max(0).describe("Always empty."),
    }),
  bodiesByStatus: {
    503: () =>
      z.object({
        status: z.literal("unready"),
        unready: z
          .array(z.enum(["draining", "storage", "shared_state"]))
          .min(1)
          .describe("Names of the parts that are not ready."),
      }),
  },
  async handle(context, { operations }: Pick<Dependencies, "operations">) {
    const unready = await operations.unreadyParts();
    return context.json(
      { status: unready.length === 0 ? "ready" : "unready", unready },
      { status: unready.length === 0 ? 200 : 503 },
    );
  },
});

/** Serves Prometheus metrics, unless they have a port of their own. */
export const metrics = defineEndpoint({
  ...shared,
  path: "/metrics",
  summary: "Show metrics in the Prometheus text format.",
  otherResponseTypes: ["text/plain"],
  async handle(context, { operations }: Pick<Dependencies, "operations">) {
    if (!operations.metricsHere)
      throw new GatewayError("not_found", "Metrics are served on their own port.");
    return new Response(await operations.metricsText(), {
      headers: { "content-type": operations.metricsContentType, ...context.headers },
    });
  },
});
