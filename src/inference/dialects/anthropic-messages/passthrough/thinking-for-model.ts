import { editMembers, memberText } from "../../../../platform/kernel/json/json-members.ts";
import type { Loss } from "../../../canonical/request.ts";
import {
  budgetTokensMin,
  budgetWithin,
  budgetFor,
  clampEffort,
  claudeAbilities,
  type ClaudeAbilities,
} from "../../shared/reasoning-rules.ts";
import type { OriginalRequest } from "../../shared/exchange.ts";
import { callsUnderWay, isThought } from "./replayed-thoughts.ts";

type Fields = Readonly<Record<string, unknown>>;

interface SentTo {
  edits: Map<string, string | undefined>;
  upstreamModel: string;
  /** The output cap that the provider is sent. */
  maxTokens: unknown;
}

/**
 * Writes thinking in the form that a Claude model takes, since a conversation that moves between
 * models keeps the form of another: a budget up to 4.5, and adaptive from 4.7 on (4.6 takes both).
 * Returns what changes. Models of other makers are sent the client's own form.
 */
export function fitThinking(
  { body, text }: Pick<OriginalRequest, "body" | "text">,
  { edits, upstreamModel, maxTokens }: SentTo,
): Loss[] {
  const thinking = body["thinking"] as Fields | null | undefined;
  const { effort } = Object(body["output_config"]) as { effort?: unknown };
  const abilities = claudeAbilities(upstreamModel);
  const losses: Loss[] = [];
  const isOff = thinking?.["type"] === "disabled";
  const efforts = (isOff ? abilities.effortsWithoutThinking : undefined) ?? abilities.efforts;
  const known =
    typeof effort === "string" ? knownEffort(effort, { ...abilities, efforts }) : effort;
  if (known !== effort) {
    const written = memberText(text, "output_config") ?? "{}";
    const fitted = known === undefined ? undefined : JSON.stringify(known);
    const rest = editMembers(written, new Map([["effort", fitted]]));
    edits.set("output_config", /^\s*\{\s*\}\s*$/.test(rest) ? undefined : rest);
    const reason =
      known === undefined
        ? "the model does not take an effort"
        : `the model knows no effort ${String(effort)}${isOff ? " without thinking" : ""}; it is sent ${String(known)}`;
    losses.push({ field: "output_config.effort", reason });
  }
  if (thinking?.["type"] === "adaptive" && abilities.takesBudgetsAlone) {
    const written = budgetText(body, { effort, maxTokens });
    edits.set("thinking", written);
    const reason =
      written === undefined ? "the model cannot think here" : "the model takes a budget";
    losses.push({ field: "thinking", reason });
  }
  if (thinking?.["type"] === "enabled" && abilities.refusesBudgets) {
    edits.set("thinking", '{"type":"adaptive"}');
    losses.push({ field: "thinking.budget_tokens", reason: "the model thinks adaptively" });
  }
  if (isOff && abilities.alwaysThinks) {
    edits.set("thinking", undefined);
    losses.push({ field: "thinking", reason: "the model cannot stop thinking" });
  }
  return losses;
}

/** Returns the effort that a Claude model takes in place of another; undefined where it takes none. */
const knownEffort = (
  effort: string,
  { refusesEffort, efforts }: Pick<ClaudeAbilities, "refusesEffort" | "efforts">,
): string | undefined => (refusesEffort ? undefined : (clampEffort(effort, efforts) ?? effort));

/**
 * Returns thinking with a budget by the effort that was asked for. Undefined where none fits: below
 * the least budget, with a forced call, or in a turn whose calls were made without thoughts.
 */
function budgetText(
  { messages, tool_choice: choice }: OriginalRequest["body"],
  { effort, maxTokens }: { effort: unknown; maxTokens: unknown },
): string | undefined {
  const wanted = budgetFor(typeof effort === "string" ? effort : undefined);
  const budget = typeof maxTokens === "number" ? budgetWithin(maxTokens, wanted) : wanted;
  const isForced = ["any", "tool"].includes(String((Object(choice) as Fields)["type"]));
  const lacksThoughts = callsUnderWay(Array.isArray(messages) ? messages : []).some(
    ({ content }) => !content.some(isThought),
  );
  return budget < budgetTokensMin || isForced || lacksThoughts
    ? undefined
    : JSON.stringify({ type: "enabled", budget_tokens: budget });
}
