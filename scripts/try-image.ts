// Builds the root file system of deploy/Dockerfile by its own steps where there is no container
// engine, and starts the gateway in it, read-only and as the image's user:  sudo bun
// scripts/try-image.ts [FOLDER] Needs root, debootstrap (its minimal Debian takes the place of both
// base images, with this machine's node and npm in that of node) and bubblewrap. FOLDER keeps what
// was built; a minimal system in FOLDER/debian is used again.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

const checkout = resolve(import.meta.dir, "..");
const folder = resolve(process.argv[2] ?? mkdtempSync(join(tmpdir(), "switchyard-image-")));
const mirror = process.env["DEBIAN_MIRROR"] ?? "http://deb.debian.org/debian";

function run(command: readonly string[], cwd = checkout): void {
  const { exitCode } = Bun.spawnSync([...command], {
    cwd,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (exitCode !== 0) throw new Error(`${command.join(" ")} ended with ${exitCode}`);
}

interface Instruction {
  name: string;
  rest: string;
}

/** The instructions of a Dockerfile, with `${NAME}` of its ARGs replaced. */
function readInstructions(path: string): Instruction[] {
  const lines = readFileSync(path, "utf8")
    .replaceAll("\\\n", " ")
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const parameters = new Map<string, string>();
  return lines.map((line) => {
    const [name = "", ...words] = line.trim().split(" ");
    const rest = words
      .join(" ")
      .replaceAll(/\$\{(\w+)\}/g, (reference, key: string) => parameters.get(key) ?? reference);
    if (name === "ARG")
      parameters.set(rest.split("=")[0] ?? "", rest.split("=").slice(1).join("="));
    return { name, rest };
  });
}

/** A stage of the build, and what its last instructions settled. */
class Stage {
  readonly root: string;
  workingDirectory = "/";
  environment: Record<string, string> = {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/root",
  };
  user = "0:0";
  healthCheck: string[] = [];
  entrypoint: string[] = [];

  constructor(name: string, image: string) {
    this.root = join(folder, name);
    rmSync(this.root, { recursive: true, force: true });
    run(["cp", "-a", minimalSystem(), this.root]);
    if (image.startsWith("node:") || image.startsWith("node@")) this.#addNode();
  }

  /** This machine's node and npm, in the place of those of the official image. */
  #addNode(): void {
    const node = Bun.which("node") ?? "node is not installed";
    const npm = dirname(dirname(realpathSync(Bun.which("npm") ?? "npm is not installed")));
    cpSync(node, join(this.root, "usr/local/bin/node"));
    cpSync(npm, join(this.root, "usr/local/lib/node_modules/npm"), { recursive: true });
    symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(this.root, "usr/local/bin/npm"));
    cpSync("/etc/resolv.conf", join(this.root, "etc/resolv.conf"), { dereference: true });
    // The registry and the certificates that this machine reaches it with.
    const certificates = "etc/ssl/certs/ca-certificates.crt";
    const places = [
      [join(homedir(), ".npmrc"), "root/.npmrc"],
      [`/${certificates}`, certificates],
    ];
    for (const [from = "", into = ""] of places) {
      mkdirSync(dirname(join(this.root, into)), { recursive: true });
      if (existsSync(from)) cpSync(from, join(this.root, into));
    }
  }

  at(path: string): string {
    return join(this.root, path.startsWith("/") ? path : join(this.workingDirectory, path));
  }

  copy(
    sourceRoot: string,
    sources: readonly string[],
    target: string,
    isIgnored: (path: string) => boolean,
  ): void {
    for (const source of sources) {
      const from = join(sourceRoot, source);
      const into = target.endsWith("/") ? join(this.at(target), basename(source)) : this.at(target);
      mkdirSync(dirname(into), { recursive: true });
      cpSync(from, into, {
        recursive: true,
        verbatimSymlinks: true,
        filter: (path) => !isIgnored(path),
      });
    }
  }

  run(line: string): void {
    const registry = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => /^npm_config_/i.test(name)),
    );
    const variables = Object.entries({ ...registry, ...this.environment }).flatMap(
      ([name, value = ""]) => ["--setenv", name, value],
    );
    run([
      "bwrap",
      "--bind",
      this.root,
      "/",
      "--dev",
      "/dev",
      "--proc",
      "/proc",
      "--clearenv",
      ...variables,
      "--chdir",
      this.workingDirectory,
      "/bin/sh",
      "-ec",
      line,
    ]);
  }
}

function minimalSystem(): string {
  const path = join(folder, "debian");
  if (!existsSync(join(path, "bin/sh")))
    run(["debootstrap", "--variant=minbase", "bookworm", path, mirror]);
  return path;
}

/** What Dockerfile.dockerignore leaves out of the folders that it lets in. */
const isIgnored = (path: string): boolean =>
  path.endsWith(".test.ts") ||
  ["dashboard/dist", "docs/decisions", "docs/pictures"].some((folder) =>
    path.startsWith(join(checkout, folder)),
  );

const stages = new Map<string, Stage>();

function carryOut({ name, rest }: Instruction, stage: Stage): void {
  const words = rest.split(" ");
  if (name === "WORKDIR") mkdirSync(stage.at((stage.workingDirectory = rest)), { recursive: true });
  else if (name === "RUN") stage.run(rest);
  else if (name === "USER") stage.user = rest;
  else if (name === "ENTRYPOINT") stage.entrypoint = JSON.parse(rest) as string[];
  else if (name === "HEALTHCHECK")
    stage.healthCheck = JSON.parse(rest.slice(rest.indexOf("CMD ") + 4)) as string[];
  else if (name === "ENV")
    Object.assign(stage.environment, Object.fromEntries(words.map((word) => word.split("=", 2))));
  else if (name === "COPY") {
    const from = /^--from=(\S+) /.exec(rest)?.[1];
    const [target = "", ...sources] = words.filter((word) => !word.startsWith("--")).reverse();
    if (from === undefined) stage.copy(checkout, sources, target, isIgnored);
    else stage.copy(stages.get(from)?.root ?? "", sources, target, () => false);
  } else if (!["ARG", "VOLUME", "EXPOSE", "STOPSIGNAL"].includes(name))
    throw new Error(`${name} is not known here`);
}

function build(): Stage {
  let stage: Stage | undefined;
  for (const instruction of readInstructions(join(checkout, "deploy/Dockerfile"))) {
    if (instruction.name === "FROM") {
      const [image = "", , name = "stage"] = instruction.rest.split(" ");
      stages.set(name, (stage = new Stage(name, image)));
    } else if (stage !== undefined) carryOut(instruction, stage);
    console.log(`${instruction.name} ${instruction.rest}`);
  }
  if (stage === undefined) throw new Error("the Dockerfile has no FROM");
  return stage;
}

/**
 * The command that runs a program in the image: root file system read-only, the image's user,
 * `/data` and `/tmp` writable.
 */
function inImage(
  { root, user, environment, workingDirectory }: Stage,
  command: readonly string[],
): string[] {
  const [uid = "", gid = ""] = user.split(":");
  const data = join(folder, "data");
  mkdirSync(data, { recursive: true });
  const variables = Object.entries({ ...environment, HOST: "127.0.0.1", PORT: "18787" }).flatMap(
    ([name, value]) => ["--setenv", name, value],
  );
  return [
    "bwrap",
    "--ro-bind",
    root,
    "/",
    "--bind",
    data,
    "/data",
    "--tmpfs",
    "/tmp",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--unshare-user",
    "--uid",
    uid,
    "--gid",
    gid,
    "--die-with-parent",
    "--clearenv",
    ...variables,
    "--chdir",
    workingDirectory,
    ...command,
  ];
}

async function tryOut(stage: Stage): Promise<void> {
  const gateway = Bun.spawn(inImage(stage, stage.entrypoint), {
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const chunk of gateway.stdout.pipeThrough(new TextDecoderStream())) {
    process.stdout.write(chunk);
    if (chunk.includes("switchyard ready")) break;
  }
  run(inImage(stage, stage.healthCheck));
  for (const path of ["/healthz", "/readyz", "/dashboard", "/docs", "/api/v1/models"]) {
    console.log(
      path,
      (await fetch(`http://127.0.0.1:18787${path}`, { redirect: "manual" })).status,
    );
  }
  // Not bubblewrap, which would end without a word to the gateway.
  const [child = ""] = readFileSync(
    `/proc/${gateway.pid}/task/${gateway.pid}/children`,
    "utf8",
  ).split(" ");
  process.kill(Number(child), "SIGTERM");
  console.log(`the gateway ended with ${await gateway.exited}`);
}

const stage = build();
run(["du", "-sh", stage.root]);
await tryOut(stage);
