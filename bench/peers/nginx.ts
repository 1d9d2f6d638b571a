import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../process/ports.ts";
import { noWork, onceOpen, type Peer, type PeerContext, type RunningPeer } from "./peer.ts";

/**
 * nginx as a plain reverse proxy: it knows nothing of what passes, and so marks what is left to be
 * won. It buffers whole answers, which is its fastest way, and not the streams, whose head says
 * `X-Accel-Buffering: no`.
 */
export const nginx: Peer = {
  name: "nginx",
  path: "/v1/chat/completions",
  headers: { authorization: "Bearer x" },
  modelPrefix: "",
  chargesRequests: false,
  work: noWork,
  prepare: async () => {
    const path = findNginx();
    if (path === undefined) return { ready: false, reason: "nginx is not on the PATH" };
    const { stderr } = Bun.spawnSync([path, "-v"], { stderr: "pipe" });
    return { ready: true, version: stderr.toString().trim().replace("nginx version: ", "") };
  },
  start,
};

/** Some systems keep nginx where only the administrator's PATH leads. */
const findNginx = (): string | undefined =>
  Bun.which("nginx") ?? Bun.which("nginx", { PATH: "/usr/sbin:/usr/local/sbin" }) ?? undefined;

async function start({ children, cores, directory, mock }: PeerContext): Promise<RunningPeer> {
  const port = freePort();
  const configPath = join(directory, "nginx.conf");
  await mkdir(join(directory, "temp"), { recursive: true });
  await writeFile(configPath, configuration({ directory, port, mockPort: mock.port }));
  const child = children.spawn({
    name: "nginx",
    command: [
      findNginx() ?? "nginx",
      "-p",
      directory,
      "-e",
      join(directory, "error.log"),
      "-c",
      configPath,
    ],
    cores: cores.peer,
  });
  return onceOpen(child, { port });
}

function configuration({
  directory,
  port,
  mockPort,
}: {
  directory: string;
  port: number;
  mockPort: number;
}): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((kind) => `${kind}_temp_path ${join(directory, "temp", kind)};`)
    .join("\n  ");
  // Started by root, nginx would run its worker as an unprivileged user, which may not enter the
  // temporary directory.
  const user = process.getuid?.() === 0 ? "user root;" : "";
  return `${user}
worker_processes 1;
worker_rlimit_nofile 16384;
daemon off;
pid ${join(directory, "nginx.pid")};
events { worker_connections 8192; }
http {
  access_log off;
  ${temporary}
  client_body_buffer_size 2m;
  client_max_body_size 50m;
  keepalive_requests 100000000;
  upstream mock { server 127.0.0.1:${mockPort}; keepalive 512; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_read_timeout 600s;
    }
  }
}
`;
}
