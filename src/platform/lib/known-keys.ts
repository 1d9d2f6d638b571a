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
