import { scenes, touchedLines } from "./files-touched/touched-lines.ts";
import { describeMachine } from "./machine.ts";
import { alignedTable } from "./report.ts";

const { bun, commit } = describeMachine(".");
console.log(`Bun ${bun}, ${commit}: files of src/ that one request runs through, lines in each`);
const measured = await touchedLines();
if (process.argv.includes("--files")) {
  const paths = [...new Set([...measured.values()].flatMap((lines) => [...lines.keys()]))].sort();
  console.log(
    alignedTable([
      ["file", ...scenes.map(({ name }) => name)],
      ...paths.map((path) => [
        path,
        ...scenes.map(({ name }) => String(measured.get(name)?.get(path) ?? "-")),
      ]),
    ]),
  );
}
console.log(
  alignedTable([
    ["request", "files", "lines", "lines a file"],
    ...[...measured].map(([name, files]) => {
      const lines = [...files.values()].reduce((sum, count) => sum + count, 0);
      return [name, String(files.size), String(lines), (lines / files.size).toFixed(1)];
    }),
  ]),
);
