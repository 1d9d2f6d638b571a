import type { ToolKind } from "../canonical/tool.ts";

/** What a wire name stands for. */
export interface ToolAlias {
  name: string;
  namespace?: string;
  /** A custom tool that went out as a function: its input is the member `input` of the arguments. */
  unwrapsInput?: boolean;
}

/** Wire names that differ from what the client called its tools; names that are absent stand for themselves. */
export type ToolAliases = ReadonlyMap<string, ToolAlias>;

/** A tool as the client names it. */
export interface NamedTool {
  kind: ToolKind;
  name: string;
  namespace?: string;
}

const illegalCharacters = /[^a-zA-Z0-9_-]/g;

/**
 * Gives tools names that a wire accepts and remembers the way back. The same tool gets the same name
 * in every request, so that a conversation's earlier calls keep fitting and prompt caches stay warm.
 */
export class ToolNamer {
  readonly aliases = new Map<string, ToolAlias>();
  private readonly maxLength: number;
  private readonly wrapsCustom: boolean;

  constructor(options: { maxLength: number; wrapsCustom: boolean }) {
    this.maxLength = options.maxLength;
    this.wrapsCustom = options.wrapsCustom;
  }

  /** True when the tool goes out as a function with the one argument `input`. */
  wraps(tool: { kind: ToolKind }): boolean {
    return this.wrapsCustom && tool.kind === "custom";
  }

  wireName(tool: NamedTool): string {
    const { name, namespace } = tool;
    const wire = legalName(
      namespace === undefined ? name : `${namespace}__${name}`,
      this.maxLength,
    );
    const unwrapsInput = this.wraps(tool);
    if (wire !== name || unwrapsInput) {
      this.aliases.set(wire, {
        name,
        ...(namespace !== undefined && { namespace }),
        ...(unwrapsInput && { unwrapsInput }),
      });
    }
    return wire;
  }
}

/** The name itself where it is legal, otherwise a prefix of it and a hash of the whole. */
export function legalName(name: string, maxLength: number): string {
  const clean = name.replace(illegalCharacters, "_");
  if (clean === name && name.length <= maxLength && name !== "") return name;
  const hash = Bun.hash.crc32(name).toString(16).padStart(8, "0");
  return `${clean.slice(0, maxLength - 9)}_${hash}`;
}

/** Arguments of a custom tool that goes out as a function. */
export const wrapInput = (input: string): string => JSON.stringify({ input });

/** The input of a custom tool out of a wrapping function's arguments; text that wraps nothing is the input itself. */
export function unwrapInput(argumentsText: string): string {
  try {
    const parsed = JSON.parse(argumentsText) as unknown;
    const input =
      typeof parsed === "object" && parsed !== null
        ? (parsed as { input?: unknown }).input
        : undefined;
    return typeof input === "string" ? input : argumentsText;
  } catch {
    return argumentsText;
  }
}
