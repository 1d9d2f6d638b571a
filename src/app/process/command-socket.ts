import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../../platform/telemetry/logger.ts";

/** A management key of one run of the command `switchyard`. */
export interface CommandKey {
  secret: string;
  /** The workspace that it administers. */
  workspace: { id: string; name: string };
}

/** A key, and where the gateway that made it listens. */
export interface ReachedGateway extends CommandKey {
  url: string;
}

/** The name of these keys in lists and in the audit log. */
export const commandKeyName = "switchyard command";

/** The longest path of a socket, in bytes (`sun_path` of Linux and macOS, the smaller of both). */
const pathBytesMax = 103;

/** Returns where the gateway on a data directory gives keys to the command. */
const commandSocketPath = (dataDirectory: string): string => join(dataDirectory, "command.sock");

/**
 * Serves keys to the command `switchyard` on the same machine: `POST /key` answers a `ReachedGateway`.
 * Only the user that runs the gateway can open the socket (mode 0600). Returns a function that
 * closes it.
 */
export function serveCommandSocket({
  dataDirectory,
  mint,
  url,
  logger,
}: {
  dataDirectory: string;
  mint(): Promise<CommandKey>;
  /** Where the gateway listens. */
  url: string;
  logger: Logger;
}): () => void {
  const path = commandSocketPath(dataDirectory);
  if (Buffer.byteLength(path) > pathBytesMax) {
    logger.warn({ path }, "the path of the data directory is too long for the command's socket");
    return () => undefined;
  }
  try {
    // On Postgres, and with the encryption key in a variable, nothing else needs the directory.
    mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
    // A gateway that was killed leaves its socket behind. Its database is locked while it runs.
    rmSync(path, { force: true });
    const server = Bun.serve({
      unix: path,
      development: false,
      async fetch(request) {
        const { pathname } = new URL(request.url);
        if (request.method !== "POST" || pathname !== "/key")
          return new Response(null, { status: 404 });
        return Response.json({ ...(await mint()), url } satisfies ReachedGateway);
      },
      error(error) {
        logger.error({ err: error }, "no key could be made for the command");
        return new Response(null, { status: 500 });
      },
    });
    chmodSync(path, 0o600);
    return () => {
      void server.stop(true);
      rmSync(path, { force: true });
    };
  } catch (error) {
    // The directory may be read-only.
    logger.warn({ err: error, path }, "the command's socket could not be opened");
    return () => undefined;
  }
}

/** Asks the gateway on a data directory for a key; undefined where none answers there. */
export async function askForCommandKey(dataDirectory: string): Promise<ReachedGateway | undefined> {
  try {
    const response = await fetch("http://localhost/key", {
      method: "POST",
      unix: commandSocketPath(dataDirectory),
    });
    return response.ok ? ((await response.json()) as ReachedGateway) : undefined;
  } catch {
    return undefined;
  }
}
