/** Variables of a process, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

const referencePattern = /\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

export type Expansion = { text: string } | { missing: string };

/**
 * Replaces `${NAME}` and `${NAME:-default}` by variables of the environment, as a shell does: an empty
 * one counts as unset. `$${NAME}` stands for the text itself.
 */
export function expandReferences(text: string, environment: Environment): Expansion {
  let missing: string | undefined;
  const expanded = text.replace(
    referencePattern,
    (reference, name: string, fallback: string | undefined) => {
      if (reference.startsWith("$$")) return reference.slice(1);
      const value = environment[name] || fallback;
      if (value === undefined) missing ??= name;
      return value ?? "";
    },
  );
  return missing === undefined ? { text: expanded } : { missing };
}
