import { fileURLToPath } from "node:url";
import { z } from "zod";
import { waitForLine, type Child, type Children } from "../process/children.ts";
import {
  loadResultSchema,
  streamsResultSchema,
  type ClosedLoopJob,
  type LoadJob,
  type LoadResult,
  type OpenStreamsJob,
  type StreamsResult,
} from "./job.ts";

const failureSchema = z.object({ failure: z.string() });

/** The load generator in its own process. */
export interface LoadGenerator {
  closedLoop(job: Omit<ClosedLoopJob, "kind">): Promise<LoadResult>;
  openStreams(job: Omit<OpenStreamsJob, "kind">): Promise<StreamsResult>;
  closeStreams(): Promise<void>;
}

/** Starts a load generator, pinned to `cores` where that is possible. */
export async function startLoadGenerator(
  children: Children,
  cores: string | undefined,
): Promise<LoadGenerator> {
  const entry = fileURLToPath(new URL("./main.ts", import.meta.url));
  const child = children.spawn({ name: "load", command: [process.execPath, entry], cores });
  await waitForLine(child, { pattern: /^load ready$/, timeoutMs: 10_000 });
  return {
    closedLoop: async (job) =>
      loadResultSchema.parse(await perform(child, { kind: "closed-loop", ...job })),
    openStreams: async (job) =>
      streamsResultSchema.parse(await perform(child, { kind: "open-streams", ...job })),
    closeStreams: async () => void (await perform(child, { kind: "close-streams" })),
  };
}

/** Sends one job and takes its answer; jobs go one after the other. */
async function perform(child: Child, job: LoadJob): Promise<unknown> {
  child.writeLine(JSON.stringify(job));
  const line = await child.nextLine();
  if (line === undefined) throw new Error(`the load generator ended: ${child.errorText()}`);
  const answer: unknown = JSON.parse(line);
  const failure = failureSchema.safeParse(answer);
  if (failure.success) throw new Error(failure.data.failure);
  return answer;
}
