import { z } from "zod";
import type { Probe, ProbeOutcome } from "../../byok/key-prober.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax } from "./account-fields.ts";
import { newProviderKeySchema, providerOf } from "./byok.ts";

const words: Record<ProbeOutcome, string> = {
  accepted: "The provider accepted the key.",
  refused: "The provider refused the key. Check that it is whole, and that it was not revoked.",
  unknown: "The provider could not be asked, or its answer says nothing about the key.",
};

/** The most characters of a provider's words that are returned. */
const reasonLengthMax = 300;

const testSchema = lazily(() =>
  z.object({
    object: z.literal("provider_key_test"),
    provider_id: z.string(),
    outcome: z.enum(["accepted", "refused", "unknown"]),
    message: z.string(),
    reason: z
      .string()
      .nullable()
      .describe("The provider's words, or why it could not be asked; null where there are none."),
    latency_ms: z.int(),
  }),
);

const shared = {
  base: "api",
  counting: "at-door",
  tag: "BYOK",
  encodeError: encodeContractError,
  access: { managementScope: "write:byok", session: true },
  method: "POST",
  response: testSchema,
} as const;

async function tested(
  { clock }: Pick<Dependencies, "clock">,
  providerId: string,
  ask: () => Promise<Probe>,
): Promise<AnswerOf<typeof testSchema>> {
  const startedMs = clock.monotonicMs();
  const { outcome, reason } = await ask();
  return {
    object: "provider_key_test",
    provider_id: providerId,
    outcome,
    message: words[outcome],
    reason: reason?.slice(0, reasonLengthMax) ?? null,
    latency_ms: Math.round(clock.monotonicMs() - startedMs),
  };
}

const secretSchema = newProviderKeySchema.pick({ provider_id: true, api_key: true });

export const testNewProviderKey = defineEndpoint({
  ...shared,
  path: "/auth/byok/test",
  idempotent: true,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Test a provider key without storing it.",
  description:
    "Lists the provider's models with the key, which costs nothing. The result is unknown if the provider could not be " +
    "reached.",
  body: secretSchema,
  async handle(context, deps: Pick<Dependencies, "inference" | "keyProber" | "clock">) {
    const { provider_id: id, api_key: secret } = context.body;
    const provider = providerOf(deps, id);
    return context.json(
      await tested(deps, provider.id, () =>
        deps.keyProber.probeSecret({ providerId: provider.id, secret }),
      ),
    );
  },
});

export const testProviderKey = defineEndpoint({
  ...shared,
  path: "/auth/byok/keys/:key_id/test",
  idempotent: true,
  summary: "Test a stored provider key.",
  description:
    "Tests the key as POST /auth/byok/test does, and applies the result: a key that was refused earlier and is accepted " +
    "now is used again.",
  async handle(context, deps: Pick<Dependencies, "providerKeyEditor" | "keyProber" | "clock">) {
    const { workspace } = context.caller;
    const key = deps.providerKeyEditor.find({
      workspaceId: workspace.id,
      id: context.param("key_id"),
    });
    return context.json(await tested(deps, key.providerId, () => deps.keyProber.probe(key)));
  },
});
