/**
 * Commits records with their counters forever, eight at a time, and prints the id of each once it
 * is durable. Arguments: the database file, and the number in the series at which to start.
 */
import { writeSync } from "node:fs";
import { openInsightStorage, recordInSeries, settledUnit } from "./generation-records.ts";

const [path, start] = process.argv.slice(2);
const storage = await openInsightStorage(`sqlite:${path}`);
writeSync(1, "open\n");

let count = Number(start);

async function settleForever(): Promise<never> {
  for (;;) {
    const record = recordInSeries(count++);
    await storage.commits.commit(settledUnit(record));
    writeSync(1, `${record.id}\n`);
  }
}

await Promise.all(Array.from({ length: 8 }, settleForever));
