import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  pythonPathOf,
  testClientsFolder,
} from "../end-to-end/clients/support/test-clients-folder.ts";

const folder = join(testClientsFolder, "s3-server");

/** Why there is no S3 service for tests; undefined where there is one. */
export const missingS3 = existsSync(join(folder, "moto"))
  ? undefined
  : "node scripts/install-test-clients.mjs installs moto";

/** An S3 service with a bucket named `files`. */
export interface S3Server {
  endpoint: string;
  stop(): Promise<void>;
}

/** Starts moto's server, which speaks S3 over HTTP, on a free port. */
export async function startS3Server(): Promise<S3Server> {
  const child = Bun.spawn(["python3", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"], {
    env: {
      PATH: process.env["PATH"] ?? "",
      PYTHONPATH: pythonPathOf("s3-server"),
      PYTHONUNBUFFERED: "1",
    },
    stdout: "ignore",
    stderr: "pipe",
  });
  let text = "";
  const decoder = new TextDecoder();
  for await (const piece of child.stderr) {
    text += decoder.decode(piece, { stream: true });
    const endpoint = /Running on (http:\/\/127\.0\.0\.1:\d+)/.exec(text)?.[1];
    if (endpoint === undefined) continue;
    await fetch(`${endpoint}/files`, {
      method: "PUT",
      headers: {
        authorization: "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request",
      },
    });
    return {
      endpoint,
      async stop() {
        child.kill("SIGKILL");
        await child.exited;
      },
    };
  }
  throw new Error(`the S3 service ended: ${text}`);
}
