import { existsSync } from "node:fs";
import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

const recordsSchema = z.array(z.object({ id: z.string(), status: z.string() }));
const fileName = "spend.ndjson";

/**
 * Keeps what LiteLLM's `generic_api` callback sends: JSON arrays of records, one a line. It is not
 * part of LiteLLM, and outlives each of its processes.
 */
export class SpendCollector {
  #server: Bun.Server<undefined> | undefined;
  #isRefusing = false;
  #path = "";

  /** Keeps what comes in a file of this directory from now on; gives the URL to send to. */
  listen(directory: string): string {
    this.#path = join(directory, fileName);
    this.#server ??= Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      maxRequestBodySize: 1024 ** 3,
      fetch: (request) => this.#take(request),
    });
    this.#server.unref();
    return `http://127.0.0.1:${this.#server.port}/spend`;
  }

  /** Answers 503 until the result is called. */
  refuse(): () => void {
    this.#isRefusing = true;
    return () => void (this.#isRefusing = false);
  }

  /** Ids of the answers that records were sent for, one for each record. */
  async readIds(directory: string): Promise<string[]> {
    const path = join(directory, fileName);
    return existsSync(path) ? collectedIds(await readFile(path, "utf8")) : [];
  }

  async #take(request: Request): Promise<Response> {
    const body = await request.text();
    if (this.#isRefusing) return new Response("not now", { status: 503 });
    await appendFile(this.#path, `${body}\n`);
    return new Response("ok");
  }
}

/** Ids of the answers in lines of JSON arrays; records of failed requests count for nothing. */
export const collectedIds = (text: string): string[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => recordsSchema.parse(JSON.parse(line)))
    .filter(({ status }) => status === "success")
    .map(({ id }) => id);
