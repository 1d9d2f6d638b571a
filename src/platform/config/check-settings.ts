import type { z } from "zod";
import type { ConfigurationProblem } from "./configuration-error.ts";
import type { Environment } from "./expand-references.ts";
import { createFileSchema, type FileSettings } from "./file-schema.ts";
import { schemaProblems } from "./schema-problems.ts";
import { pathText } from "./show-value.ts";
import { readYaml, type YamlSource } from "./yaml-source.ts";

/** What a file's text is checked with. */
export interface CheckOptions<Provider extends z.ZodType> {
  /** Name of the file in messages. */
  file: string;
  /** Where relative paths in it start. */
  directory: string;
  environment: Environment;
  providerSchema: Provider;
}

/** The settings that a file's text says; undefined when they cannot be used, and then a problem says why. */
export function checkSettings<Provider extends z.ZodType>(
  text: string,
  { file, directory, environment, providerSchema }: CheckOptions<Provider>,
  problems: ConfigurationProblem[],
): FileSettings<Provider> | undefined {
  const schema = createFileSchema(providerSchema, directory);
  const source = readYaml(text, { file, environment });
  problems.push(...source.problems);
  if (source.data === undefined) return undefined;
  problems.push(...duplicateProviders(source, file));
  const result = schema.safeParse(source.data ?? {});
  if (result.success) return result.data;
  problems.push(...schemaProblems(result.error.issues, { schema, source, file }));
  return undefined;
}

function duplicateProviders(source: YamlSource, file: string): ConfigurationProblem[] {
  const firstIndexes = new Map<string, number>();
  return providerIds(source.data).flatMap((id, index) => {
    if (id === undefined) return [];
    const first = firstIndexes.get(id);
    if (first === undefined) firstIndexes.set(id, index);
    if (first === undefined) return [];
    const path = ["providers", index, "id"];
    const message = `${JSON.stringify(id)} is already the id of providers[${first}]`;
    return [{ key: pathText(path), message, file, ...source.positionOf(path) }];
  });
}

function providerIds(data: unknown): (string | undefined)[] {
  if (
    typeof data !== "object" ||
    data === null ||
    !("providers" in data) ||
    !Array.isArray(data.providers)
  )
    return [];
  return data.providers.map((entry: unknown) =>
    typeof entry === "object" && entry !== null && "id" in entry && typeof entry.id === "string"
      ? entry.id
      : undefined,
  );
}
