import { z } from "zod";

/** Keys that a schema knows at a path, through the wrappers that a schema may have on the way. */
export function knownKeys(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  let level = alternatives(schema);
  for (const part of path)
    level = level.flatMap((candidate) => children(candidate, part)).flatMap(alternatives);
  return level.flatMap((candidate) => {
    if (candidate instanceof z.ZodObject) return Object.keys(candidate.shape);
    const keyType = candidate instanceof z.ZodRecord ? candidate.keyType : undefined;
    return keyType instanceof z.ZodEnum ? keyType.options.map(String) : [];
  });
}

function alternatives(schema: z.core.$ZodType): z.core.$ZodType[] {
  if (schema instanceof z.ZodUnion) return schema.options.flatMap(alternatives);
  if (schema instanceof z.ZodPipe) return [...alternatives(schema.in), ...alternatives(schema.out)];
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return alternatives(schema.unwrap());
  if (schema instanceof z.ZodDefault) return alternatives(schema.unwrap());
  return [schema];
}

function children(schema: z.core.$ZodType, part: PropertyKey): z.core.$ZodType[] {
  if (schema instanceof z.ZodArray) return [schema.element];
  if (schema instanceof z.ZodRecord) return [schema.valueType];
  const child =
    schema instanceof z.ZodObject
      ? (schema.shape as Record<PropertyKey, z.core.$ZodType>)[part]
      : undefined;
  return child ? [child] : [];
}

/** The known name that a misspelt one most likely means; undefined when none is close. */
export function closestName(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  // Two letters swapped count as two; a name that has to change altogether was not meant.
  let bestDistance = Math.min(Math.max(2, Math.floor(name.length / 3)) + 1, name.length);
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/** Insertions, deletions and replacements between two words (Levenshtein). */
function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}
