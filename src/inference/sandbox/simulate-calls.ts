import type { OfferedTool, SimulatedPrompt } from "./prompt.ts";
import { exampleOfSchema } from "./schema-example.ts";
import type { SimulatedCall } from "./reply.ts";
import { splitTokens } from "./tokens.ts";

/**
 * The tool calls that a prompt gets: one of the first tool, or of the one it names, when its last
 * message is the user's; as many as `sandbox:calls` says, tool after tool; none after tool results.
 */
export function simulateCalls(prompt: SimulatedPrompt, choiceIndex: number): SimulatedCall[] {
  if (prompt.toolChoice.mode === "none" || prompt.toolResultText !== undefined) return [];
  const callable = callableTools(prompt);
  if (callable.length === 0) return [];
  const wished = prompt.directives.calls ?? 1;
  const count = prompt.parallelCalls ? wished : Math.min(wished, 1);
  return Array.from({ length: count }, (_, index) => {
    const tool = callable[index % callable.length];
    return tool === undefined ? [] : [simulateCall(tool, `${prompt.seed}${choiceIndex}${index}`)];
  }).flat();
}

function callableTools(prompt: SimulatedPrompt): OfferedTool[] {
  const { toolChoice, tools } = prompt;
  return toolChoice.mode === "named"
    ? tools.filter((tool) => tool.name === toolChoice.name)
    : tools;
}

function simulateCall(tool: OfferedTool, idSuffix: string): SimulatedCall {
  const argumentText =
    tool.kind === "custom"
      ? `simulated input of ${tool.name}`
      : JSON.stringify(exampleOfSchema(objectSchema(tool.schema)));
  return {
    id: `call_${idSuffix}`,
    name: tool.name,
    kind: tool.kind,
    argumentTokens: splitTokens(argumentText),
  };
}

/**
 * Arguments are always an object, also where the tool declares no schema or leaves out its type.
 */
const objectSchema = (schema: unknown): unknown =>
  typeof schema === "object" && schema !== null
    ? { type: "object", ...schema }
    : { type: "object" };
