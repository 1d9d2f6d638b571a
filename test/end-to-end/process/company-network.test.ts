import { afterAll, afterEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createAuthority } from "../../support/certificates.ts";
import { startHttpProxy } from "../../support/http-proxy.ts";
import { endProcesses, startProcess, temporaryDirectory } from "../../support/process.ts";
import { chatCompletion, fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import { at } from "../api/at.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { postChat } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";

const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});
afterAll(endProcesses);

const authority = createAuthority();

/** A provider behind TLS that only a proxy reaches, and the proxy. */
async function startNetwork() {
  const provider = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: authority.issue("api.acme.example"),
    fetch: () => Response.json(chatCompletion({ text: fixtureText })),
  });
  const proxy = await startHttpProxy({ to: provider.port ?? 0 });
  ends.push(
    () => provider.stop(true),
    () => proxy.stop(),
  );
  const certificates = join(temporaryDirectory(), "company.pem");
  writeFileSync(certificates, authority.cert);
  return { proxy, certificates, proxyUrl: `http://me:hidden-password@127.0.0.1:${proxy.port}` };
}

const saidBy = async (response: Response): Promise<unknown> =>
  at(await response.json(), "choices.0.message.content");
const tunnel = "CONNECT api.acme.example:443 HTTP/1.1";

test("a provider is reached through HTTPS_PROXY and trusted by tls.ca_files", async () => {
  const { proxy, proxyUrl, certificates } = await startNetwork();
  const gateway = await startProcess({
    yaml: acmeYaml(
      "https://api.acme.example/v1",
      `tls: { ca_files: [${JSON.stringify(certificates)}] }\n`,
    ),
    environment: {
      ...bootstrapVariables,
      HTTPS_PROXY: proxyUrl,
      NO_PROXY: "internal.example",
      LOG_LEVEL: "debug",
    },
  });
  expect(await saidBy(await postChat(gateway))).toBe(fixtureText);
  expect(proxy.requests.map(({ line }) => line)).toEqual([tunnel]);
  expect(gateway.stderrText + gateway.stdoutLines.join("\n")).not.toContain("hidden-password");
});

test("a provider can have its own proxy, and NODE_EXTRA_CA_CERTS is trusted", async () => {
  const { proxy, proxyUrl, certificates } = await startNetwork();
  const gateway = await startProcess({
    yaml: acmeYaml("https://api.acme.example/v1").replace(
      "    models:",
      "    proxy: ${ACME_PROXY}\n    models:",
    ),
    environment: {
      ...bootstrapVariables,
      ACME_PROXY: proxyUrl,
      HTTPS_PROXY: "http://127.0.0.1:1",
      NODE_EXTRA_CA_CERTS: certificates,
    },
  });
  expect(await saidBy(await postChat(gateway))).toBe(fixtureText);
  expect(proxy.requests.map(({ line }) => line)).toEqual([tunnel]);
});

test("a refusal by the proxy is reported without its credentials", async () => {
  const refusal = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
  const proxy = await startHttpProxy({ to: 0, answer: refusal });
  ends.push(() => proxy.stop());
  const proxyUrl = `http://me:hidden-password@127.0.0.1:${proxy.port}`;
  const gateway = await startProcess({
    yaml: acmeYaml("https://api.acme.example/v1"),
    environment: { ...bootstrapVariables, HTTPS_PROXY: proxyUrl, LOG_LEVEL: "debug" },
  });
  const response = await postChat(gateway);
  const text = await response.text();
  expect([response.status, at(JSON.parse(text), "error.message")]).toEqual([
    502,
    expect.stringContaining("the proxy refused"),
  ]);
  expect(text + gateway.stderrText + gateway.stdoutLines.join("\n")).not.toContain(
    "hidden-password",
  );
});
