import { diffLines } from "diff";
import { Actions, Button } from "../../ui/button.tsx";
import type { Tool, ToolDefinition } from "./api.ts";
import own from "./mcp-servers.module.css";

const textOf = ({ description, input_schema: schema, annotations }: ToolDefinition): string =>
  [
    `Description: ${description ?? "none"}`,
    `Arguments: ${JSON.stringify(schema, null, 2)}`,
    `Hints: ${JSON.stringify(annotations ?? {}, null, 2)}`,
    "",
  ].join("\n");

const marks = { removed: "del", added: "ins" } as const;

/** What a server changed in the definition of a tool, line by line, and the way to accept it. */
export function DefinitionChange({
  tool,
  onAccept,
  isPending,
}: {
  tool: Tool & { changed: ToolDefinition };
  /** Absent for those who may not accept it. */
  onAccept: (() => void) | undefined;
  isPending: boolean;
}) {
  const parts = diffLines(textOf(tool), textOf(tool.changed));
  return (
    <section aria-label={`Change of ${tool.name}`}>
      <p>
        <strong>{tool.name}</strong>: the server defines this tool differently now. It is neither
        listed nor called until the change is accepted, since a description can tell models what to
        do.
      </p>
      <div className={own["change"]}>
        {parts.map(({ value, added, removed }, index) => {
          const Line = added ? marks.added : removed ? marks.removed : "span";
          return (
            <Line key={index} className={own[Line] ?? ""}>
              {value}
            </Line>
          );
        })}
      </div>
      {onAccept === undefined ? null : (
        <Actions>
          <Button disabled={isPending} onClick={onAccept}>
            Accept change of {tool.name}
          </Button>
        </Actions>
      )}
    </section>
  );
}
