import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { emptyReply } from "../adapters/empty-reply.ts";
import {
  planSchema,
  weatherTool,
  type ClientFailure,
  type ClientUnderTest,
  type Reply,
} from "../support/client-under-test.ts";
import { pythonPathOf, testClientsFolder } from "../support/test-clients-folder.ts";

/** The drivers: a script of this folder, the folder of its packages, and the modules that it imports. */
const drivers = {
  common: { script: "driver.py", folder: "python", modules: ["openai", "anthropic"] },
  google: { script: "google_driver.py", folder: "python-google", modules: ["google/genai"] },
  langchain: {
    script: "google_driver.py",
    folder: "python-google-langchain",
    modules: ["langchain_google_genai"],
  },
} as const;

/** The name of a driver. */
type DriverName = keyof typeof drivers;

/** What is missing to run a driver of Python's clients; undefined when it can run. */
export function missingForPython(name: DriverName = "common"): string | undefined {
  if (Bun.which("python3") === null) return "python3";
  const { folder, modules } = drivers[name];
  const there = modules.every((module) => existsSync(join(testClientsFolder, folder, module)));
  return there ? undefined : "the packages that scripts/install-test-clients.mjs installs";
}

/** A failure that a Python client raised. */
class PythonFailure extends Error {
  readonly failure: ClientFailure;

  constructor(failure: ClientFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** A Python process that asks one question after another. */
export interface PythonDriver {
  client(
    surface: string,
    parts: Pick<ClientUnderTest, "name" | "errorNames" | "cannot">,
  ): ClientUnderTest;
  /** Ends the process; in tests where it never started, does nothing. */
  stop(): Promise<void>;
}

/** Makes a driver whose process starts with the first question. */
export function pythonDriver(name: DriverName = "common"): PythonDriver {
  let started:
    | { child: Subprocess<"pipe", "pipe", "inherit">; lines: AsyncIterator<string> }
    | undefined;
  async function send(asked: unknown): Promise<Reply> {
    started ??= start(name);
    started.child.stdin.write(`${JSON.stringify(asked)}\n`);
    const { value } = await started.lines.next();
    const answer = JSON.parse(value as string) as { reply?: Reply | null; failure?: ClientFailure };
    if (answer.failure) throw new PythonFailure(answer.failure);
    const { reply } = answer;
    if (!reply) return emptyReply;
    return { ...reply, usage: { ...reply.usage, cost: reply.usage.cost ?? undefined } };
  }
  return {
    client: (surface, parts) => ({
      ...parts,
      connect: (options) => (question) => send({ surface, options, question }),
      failureOf(error) {
        if (!(error instanceof PythonFailure)) throw error;
        return { ...error.failure, status: error.failure.status ?? undefined };
      },
    }),
    async stop() {
      await started?.child.stdin.end();
      await started?.child.exited;
    },
  };
}

function start(name: DriverName): {
  child: Subprocess<"pipe", "pipe", "inherit">;
  lines: AsyncIterator<string>;
} {
  const { folder } = drivers[name];
  const script = fileURLToPath(new URL(drivers[name].script, import.meta.url));
  const parameters = [weatherTool, planSchema].map((value) => JSON.stringify(value));
  const child = Bun.spawn(["python3", script, ...parameters], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
    env: {
      PATH: process.env["PATH"] ?? "",
      PYTHONPATH: pythonPathOf(folder),
      PYTHONDONTWRITEBYTECODE: "1",
    },
  });
  return { child, lines: linesOf(child.stdout) };
}

async function* linesOf(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of bytes) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
