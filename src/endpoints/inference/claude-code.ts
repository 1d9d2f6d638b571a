import { createHash } from "node:crypto";
import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { Reply } from "../../http/reply.ts";
import { assert } from "../../platform/kernel/assert.ts";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { anthropicMessages } from "../../inference/dialects/anthropic-messages/index.ts";
import { neverCached } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { spendCapOf, usedPercent } from "./spend-cap.ts";

/**
 * The fixed paths of Claude Code's gateway protocol, which it requests below the address that it
 * signed in to.
 */
const forAgent = {
  base: "root",
  method: "GET",
  access: { llmKey: true, ofItself: true },
  counting: "at-door",
  tag: "Key minting",
  encodeError: anthropicMessages.encodeError,
} as const;

/** Returns JSON with the keys of every object sorted, as the client computes the checksum. */
function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([key, each]) => `${JSON.stringify(key)}:${sortedJson(each)}`).join(",")}}`;
}

/** Serves the settings that the operator prescribes for Claude Code. */
export const managedSettings = defineEndpoint<Pick<Dependencies, "claudeCode">>({
  ...forAgent,
  path: "/managed/settings",
  summary: "Show the managed settings for Claude Code.",
  description: "Answers 404 if the operator has configured none (claude_code.managed_settings).",
  furtherAnswers: { 304: "The settings still have the ETag of If-None-Match." },
  response: () =>
    z.object({
      uuid: z.string().describe("Identifier that changes with the settings."),
      checksum: z
        .string()
        .describe("SHA-256 of the settings as JSON with sorted keys; equal to the ETag."),
      settings: z
        .looseObject({})
        .describe("Settings for Claude Code from claude_code.managed_settings."),
    }),
  handle(context, { claudeCode }) {
    const settings = claudeCode.managedSettings;
    if (settings === undefined)
      throw new GatewayError("not_found", "There are no managed settings on this gateway.");
    const checksum = `sha256:${createHash("sha256").update(sortedJson(settings)).digest("hex")}`;
    const headers = { ...neverCached, etag: `"${checksum}"` };
    if (context.request.headers.get("if-none-match") === `"${checksum}"`)
      return new Reply("", { status: 304, headers });
    return context.json({ uuid: checksum.slice(7, 39), checksum, settings }, { headers });
  },
});

const usageSchema = lazily(() =>
  z.object({
    extra_usage: z
      .looseObject({
        is_enabled: z.boolean().describe("Always true: every request is billed by usage."),
        monthly_limit: z
          .number()
          .nullable()
          .describe("Limit of the key in cents; null without a limit."),
        used_credits: z
          .number()
          .describe(
            "Cents spent of the limit; without a limit, cents spent in the current UTC month.",
          ),
        utilization: z
          .number()
          .nullable()
          .describe("Percentage of the limit that is spent; null without a limit."),
        currency: z.literal("USD"),
      })
      .describe("Spend of the key."),
    limits: z
      .array(
        z.looseObject({
          kind: z.literal("spend"),
          group: z.string().describe("Period of the limit, such as day or month."),
          percent: z.number().describe("Percentage of the limit that is spent."),
          resets_at: z.string().describe("When all current spend has left the period (ISO 8601)."),
        }),
      )
      .describe("Limit of the key; empty without a limit."),
  }),
);

const centsOf = (nano: bigint): number => Math.round(usdFromNano(nano) * 100);
const severityOf = (percent: number): string =>
  percent >= 95 ? "critical" : percent >= 75 ? "warning" : "normal";

/** Shows what the key's owner has spent of its limit, in the form that Claude Code reads. */
export const agentUsage = defineEndpoint<Pick<Dependencies, "ledger" | "clock">>({
  ...forAgent,
  path: "/api/oauth/usage",
  summary: "Show the spend of the key in Claude Code's format.",
  description:
    "Amounts are in cents. For a key without a limit, `limits` is empty and the spend of the current UTC month, week and day is " +
    "shown.",
  query: z.looseObject({}),
  response: usageSchema,
  async handle(context, deps) {
    const { caller } = context;
    assert(
      caller.kind === "llm-key" || caller.kind === "connection",
      "the door lets in LLM keys alone",
    );
    await deps.ledger.refresh(caller.workspace.id);
    const cap = spendCapOf(caller, deps);
    if (cap !== undefined) {
      const percent = usedPercent(cap);
      const used = {
        is_enabled: true,
        monthly_limit: centsOf(cap.limitNano),
        used_credits: centsOf(cap.spentNano),
        utilization: percent,
      };
      const row = {
        kind: "spend",
        group: cap.period,
        percent,
        resets_at: new Date(cap.resetsAtMs).toISOString(),
        severity: severityOf(percent),
        is_active: true,
      };
      return context.json(
        { extra_usage: { ...used, currency: "USD" }, limits: [row] },
        { headers: neverCached },
      );
    }
    const nowMs = deps.clock.nowMs();
    const { spend } = deps.ledger.book.key(caller.key.id);
    const since = (startMs: number): number =>
      centsOf(spend.spentWithin(Math.floor((nowMs - startMs) / hourMs), nowMs));
    const dayStartMs = Math.floor(nowMs / dayMs) * dayMs;
    const today = new Date(nowMs);
    const uncapped = (used: number) => ({ limit: null, used_credits: used, utilization: null });
    return context.json(
      {
        extra_usage: {
          is_enabled: true,
          monthly_limit: null,
          used_credits: since(Date.UTC(today.getUTCFullYear(), today.getUTCMonth())),
          utilization: null,
          currency: "USD",
          daily: uncapped(since(dayStartMs)),
          weekly: uncapped(since(dayStartMs - ((today.getUTCDay() + 6) % 7) * dayMs)),
        },
        limits: [],
      },
      { headers: neverCached },
    );
  },
});

const exported = z.looseObject({});

/**
 * Accepts the telemetry that Claude Code exports to the address that it signed in to, and discards
 * it.
 */
export const agentTelemetry = (["metrics", "logs", "traces"] as const).map((signal) =>
  defineEndpoint<unknown>({
    ...forAgent,
    method: "POST",
    unaudited: true,
    path: `/v1/${signal}`,
    summary: `Accept and discard OpenTelemetry ${signal} from Claude Code.`,
    bodyBytesMax: 4 * 1024 * 1024,
    rawBody: exported,
    response: () => exported,
    handle: (context) => context.json({}),
  }),
);
