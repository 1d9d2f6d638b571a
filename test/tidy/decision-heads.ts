import type { Finding, Rule } from "./rule.ts";

const folder = "docs/decisions/";
const heading = /^# (\d{4}): [A-Z`'"]/;
const status =
  /^Date: \d{4}-\d{2}-\d{2}\. Status: (?:accepted|superseded(?: by \[(\d{4})\]\([^)]+\))?)(?:; .+)?\.$/;

/** Records of decisions begin alike, so that a reader sees which of them hold. */
export const decisionHeads: Rule = {
  name: "heads of decisions",
  fix: "Begin with `# NNNN: Title`, an empty line, and `Date: YYYY-MM-DD. Status: accepted.` or `superseded by [NNNN](file)`.",
  check({ documents }): Finding[] {
    const records = [...documents].filter(([path]) => path.startsWith(folder));
    const numbers = new Map<string, string>();
    return records.flatMap(([path, text]) => {
      const name = path.slice(path.lastIndexOf("/") + 1);
      const number = name.slice(0, 4);
      const [first = "", second, third = ""] = text.split("\n");
      const other = numbers.get(number);
      numbers.set(number, path);
      const problems = [
        ...(other === undefined ? [] : [{ line: 1, problem: `has the number of ${other}` }]),
        ...(heading.exec(first)?.[1] === number
          ? []
          : [{ line: 1, problem: `has the head ${first}` }]),
        ...(second === "" && status.test(third) ? [] : [{ line: 3, problem: `says ${third}` }]),
      ];
      return problems.map((each): Finding => ({ path, ...each }));
    });
  },
};
