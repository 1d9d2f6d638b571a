import type { SourceTree } from "./source-tree.ts";

/** One place that breaks a rule. */
export interface Finding {
  path: string;
  /** Counted from 1; absent where the file as a whole is meant. */
  line?: number;
  problem: string;
  /** What counts for the ratchet; 1 unless the rule measures something, such as lines. */
  weight?: number;
}

/** One rule of the house; what it allows for now stands in `ratchet.json` under its name. */
export interface Rule {
  name: string;
  /** How a finding is mended, as one sentence. */
  fix: string;
  check(tree: SourceTree): Finding[];
}

/** Whether a file is a test or only used by tests. */
export const isTest = (path: string): boolean =>
  path.endsWith(".test.ts") || path.startsWith("test/");

/** Whether a file is part of the program. */
export const isProgram = (path: string): boolean => path.startsWith("src/") && !isTest(path);
