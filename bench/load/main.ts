import { createInterface } from "node:readline";
import { runClosedLoop } from "./closed-loop.ts";
import { jobSchema, type LoadJob } from "./job.ts";
import { openStreams, type HeldStreams } from "./open-streams.ts";

let held: HeldStreams | undefined;

async function perform(job: LoadJob): Promise<unknown> {
  if (job.kind === "closed-loop") return runClosedLoop(job);
  held?.close();
  held = undefined;
  if (job.kind === "close-streams") return { open: 0, errors: 0 };
  held = await openStreams(job);
  return held.result;
}

async function performLine(line: string): Promise<unknown> {
  try {
    return await perform(jobSchema.parse(JSON.parse(line)));
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
}

// Takes a job a line and answers with a line. The end of the input, also by the parent's death,
// ends the process.
console.log("load ready");
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await performLine(line)));
}
process.exit(0);
