interface Family {
  comments: string[];
  samples: string[];
}

/**
 * Merges the Prometheus texts of several processes into one, each sample with a label `process`.
 */
export function mergeExpositions(texts: readonly { process: string; text: string }[]): string {
  const families = new Map<string, Family>();
  for (const { process, text } of texts) {
    let family: Family | undefined;
    const isNew = new Set<string>();
    for (const line of text.split("\n")) {
      const named = /^# (?:HELP|TYPE) (\S+)/.exec(line)?.[1];
      if (named !== undefined) {
        family = families.get(named);
        if (family === undefined) {
          family = { comments: [], samples: [] };
          families.set(named, family);
          isNew.add(named);
        }
        if (isNew.has(named)) family.comments.push(line);
      } else if (line !== "" && !line.startsWith("#")) {
        family?.samples.push(labelled(line, process));
      }
    }
  }
  return [...families.values()]
    .flatMap(({ comments, samples }) => [...comments, ...samples, ""])
    .join("\n");
}

/** Returns a sample such as `name{a="b"} 1` or `name 1` with one more label. */
function labelled(sample: string, process: string): string {
  const label = `process="${process}"`;
  const [, name = "", open = "", rest = ""] = /^([^\s{]+)(\{?)(.*)$/.exec(sample) ?? [];
  if (open === "") return `${name}{${label}}${rest}`;
  return `${name}{${label}${rest.startsWith("}") ? "" : ","}${rest}`;
}
