import { join } from "node:path";

const sources = join(import.meta.dir, "..", "..", "src");

/** A program of the gateway: the gateway itself, its command, and the job that migrates. */
export type Program = "main" | "switchyard" | "migrate";

/** Every program that tests run. */
export const programs: readonly Program[] = ["main", "switchyard", "migrate"];

/** Returns the path of a program's source, as `npm start` runs it. */
export const sourceOf = (program: Program): string => join(sources, `${program}.ts`);

/** Names the variable with the folder of the bundle that `npm test` makes for all its processes. */
export const bundleVariable = "SWITCHYARD_TEST_PROGRAM";

/** Whether this is a whole run, whose gateways are started from the bundle. */
export const isBundled = process.env[bundleVariable] !== undefined;

/**
 * Returns the path of a program: that of its bundle in a whole run, which loads in half the time,
 * and otherwise that of its source.
 */
export function programPath(program: Program): string {
  const folder = process.env[bundleVariable];
  return folder === undefined ? sourceOf(program) : join(folder, `${program}.js`);
}
