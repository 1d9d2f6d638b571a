import { outputCapNames } from "../../platform/kernel/models/preset-settings.ts";
import type { SourceNode } from "./source-node.ts";

/** Parameters of requests that presets set under the same name, with how their value is read. */
const sameNames: readonly (readonly [string, (part: SourceNode) => unknown])[] = [
  ...["temperature", "top_p", "frequency_penalty", "presence_penalty"].map(
    (name) => [name, (part: SourceNode) => part.number()] as const,
  ),
  ...[...outputCapNames, "top_k"].map((name) => [name, count] as const),
  ["seed", (part) => part.number()],
  ...["stop", "response_format"].map((name) => [name, (part: SourceNode) => part.whole()] as const),
];

/**
 * Returns the parameters of requests that a preset can set, as a preset writes them. A value that
 * no preset takes is reported.
 */
export function presetParametersOf(node: SourceNode | undefined): Record<string, unknown> {
  const parameters: Record<string, unknown> = {};
  for (const [name, read] of sameNames) {
    const part = node?.get(name);
    const value = part === undefined ? undefined : read(part);
    if (value !== undefined) parameters[name] = value;
    else part?.report("left_out", "is no value that a preset takes");
  }
  const reasoning = reasoningOf(node);
  if (reasoning !== undefined) parameters["reasoning"] = reasoning;
  return parameters;
}

/** Returns the reasoning that `reasoning_effort` or Anthropic's `thinking` asks for. */
function reasoningOf(node: SourceNode | undefined): Record<string, unknown> | undefined {
  const effort = node?.get("reasoning_effort");
  const level = effort?.text() ?? effort?.get("effort")?.text();
  if (level !== undefined) return { effort: level };
  const thinking = node?.get("thinking");
  const type = thinking?.get("type")?.text();
  const budget = thinking?.entries().find(([key]) => key.startsWith("budget_"))?.[1];
  if (type === "disabled") return { enabled: false };
  const tokens = budget === undefined ? undefined : count(budget);
  if (type !== undefined) return tokens === undefined ? { enabled: true } : { max_tokens: tokens };
  return undefined;
}

function count(part: SourceNode): number | undefined {
  const value = part.number();
  return value !== undefined && Number.isInteger(value) && value > 0 ? value : undefined;
}
