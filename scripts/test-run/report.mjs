// The end of a run: who reads nothing else must know what failed, why, and how to repeat it.

/** Lines that failures may take; with the last line they stay within the last fifty. */
const linesMax = 46;
const columnsMax = 160;

const noise = /^\s*(?:at |\d+ \||-{20,}$|\^$|$)/;

/** Returns what a failure says, its most telling line first. */
function messageOf(lines) {
  const start = lines.findIndex((line) => /^\s*(?:\w*[Ee]rror|AssertionError)\b.*:/.test(line));
  const kept = (start < 0 ? lines : lines.slice(start)).filter((line) => !noise.test(line));
  return kept.length > 0 ? kept.map((line) => line.trimEnd()) : ["no message: see above"];
}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Returns a pattern for `-t`, which matches against the titles with spaces between them. */
const patternOf = (title) => title.replaceAll(" > ", " ").replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Returns the command that repeats a test, or all of its file where the title is not known. */
function commandOf({ file, title }) {
  const all = `npx bun test --timeout 60000 ./${file}`;
  return title === "" ? all : `${all} -t ${quoted(patternOf(title))}`;
}

const cut = (line) => (line.length > columnsMax ? `${line.slice(0, columnsMax - 3)}...` : line);

function linesOf(failure, room) {
  const [first, ...others] = messageOf(failure.lines);
  const name = [failure.file, failure.title].filter(Boolean).join(" > ");
  const again = failure.command ?? commandOf(failure);
  if (room < 3) return [`${cut(`${name}: ${first.trim()}`)} | ${again}`];
  return [
    `failed: ${name}`,
    ...[first, ...others].slice(0, room - 2).map((line) => cut(`    ${line}`)),
    `    again: ${again}`,
  ];
}

/** Returns the lines that repeat the failures; the more there are, the shorter is each. */
export function failureLines(failures) {
  const room = Math.floor(linesMax / Math.max(1, failures.length));
  if (room >= 1) return failures.flatMap((failure) => linesOf(failure, Math.min(room, 12)));
  const shown = failures.slice(0, linesMax - 1).flatMap((failure) => linesOf(failure, 1));
  return [...shown, `and ${failures.length - shown.length} more, which stand above`];
}

const seconds = (milliseconds) => `${(milliseconds / 1_000).toFixed(1)} s`;

/** Returns the lines that name the slowest files. */
export function slowestLines(durations, count = 10) {
  const slowest = [...durations].sort(([, left], [, right]) => right - left).slice(0, count);
  return [
    `the ${slowest.length} slowest files:`,
    ...slowest.map(([file, milliseconds]) => `${seconds(milliseconds).padStart(9)}  ${file}`),
  ];
}

/** How many tests were skipped for want of what; a title says `(missing: what)`. */
export function skipReasons(skips) {
  const counts = new Map();
  for (const line of skips) {
    const reason =
      /\(missing: (.*?)\)(?: >|$|\s)/.exec(line)?.[1] ??
      "something else that this machine lacks, which their titles name";
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return counts;
}
