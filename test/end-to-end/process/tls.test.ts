import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FaultScrapes, testAlert } from "../../support/alert-firing.ts";
import {
  endProcesses,
  runProcess,
  startProcess,
  temporaryDirectory,
} from "../../support/process.ts";
import { runCommand } from "../command/run-command.ts";
import { until } from "../nodes/support/until.ts";

afterAll(endProcesses);

/** A certificate for 127.0.0.1 that signs itself. */
function certificate(): { cert: string; key: string } {
  const directory = temporaryDirectory();
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const made = Bun.spawnSync([
    "openssl",
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-days",
    "2",
    "-subj",
    "/CN=gateway",
    "-addext",
    "subjectAltName=IP:127.0.0.1",
    "-keyout",
    key,
    "-out",
    cert,
  ]);
  if (made.exitCode !== 0) throw new Error(made.stderr.toString());
  return { cert, key };
}

test("server.tls serves HTTPS with the configured certificate and no plain HTTP", async () => {
  const { cert, key } = certificate();
  const gateway = await startProcess({ yaml: `server: { tls: { cert: ${cert}, key: ${key} } }\n` });
  expect(gateway.url).toStartWith("https://127.0.0.1:");
  const response = await fetch(`${gateway.url}/healthz`, { tls: { ca: Bun.file(cert) } });
  expect([response.status, await response.json()]).toEqual([200, { status: "ok" }]);
  const untrusted = await fetch(`${gateway.url}/healthz`).then(
    () => "served",
    () => "refused",
  );
  const plain = await fetch(`${gateway.url.replace("https", "http")}/healthz`).then(
    () => "served",
    () => "refused",
  );
  expect([untrusted, plain]).toEqual(["refused", "refused"]);
  // The command on the same machine asks the gateway itself where it is.
  const { dataDirectory } = gateway;
  const listed = await runCommand(["--json", "keys", "list"], { dataDirectory });
  expect([listed.exitCode, listed.stderr]).toEqual([
    0,
    expect.stringContaining(`As the operator of ${gateway.url}`),
  ]);
  expect(await gateway.terminate()).toBe(0);
});

let shortLived: FaultScrapes;
test("a reload serves a renewed certificate, and open connections go on", async () => {
  const { cert, key } = certificate();
  const renewed = certificate();
  const path = join(temporaryDirectory(), "gateway.yaml");
  const yaml = `server: { tls: { cert: ${cert}, key: ${key} } }\n`;
  writeFileSync(path, yaml);
  const gateway = await startProcess({
    environment: { SWITCHYARD_METRICS_PORT: "0", SWITCHYARD_CONFIG: path },
  });
  const first = Bun.file(cert);
  const firstText = await first.text();
  const askWith = (ca: string): Promise<number> =>
    fetch(`${gateway.url}/healthz`, { tls: { ca }, keepalive: false }).then(
      ({ status }) => status,
      () => 0,
    );
  expect(await askWith(firstText)).toBe(200);
  const renewedText = await Bun.file(renewed.cert).text();
  writeFileSync(cert, renewedText);
  writeFileSync(key, await Bun.file(renewed.key).text());
  gateway.child.kill("SIGHUP");
  await until(async () => (await askWith(renewedText)) === 200, {
    patienceMs: 60_000,
    what: "the renewed certificate is served",
  });
  expect(await askWith(firstText)).toBe(0);
  writeFileSync(key, "no key");
  gateway.child.kill("SIGHUP");
  await gateway.stderrHas("the catalog stays as it was");
  expect(await askWith(renewedText)).toBe(200);
  // A whole pair beside facts that cannot be used is not taken over either.
  const third = certificate();
  writeFileSync(cert, await Bun.file(third.cert).text());
  writeFileSync(key, await Bun.file(third.key).text());
  writeFileSync(path, `${yaml}catalog: { facts: nowhere.json }\n`);
  gateway.child.kill("SIGHUP");
  await gateway.stderrHas("catalog.facts");
  expect(await askWith(renewedText)).toBe(200);
  const [, at = ""] = /Metrics +(\S+)/.exec(gateway.stdoutLines.join("\n")) ?? [];
  const metrics = await (await fetch(at)).text();
  const [, left] = /^switchyard_tls_certificate_expiry_seconds (\S+)$/m.exec(metrics) ?? [];
  expect(Number(left) / 86_400).toBeWithin(1.9, 2.1);
  shortLived = { before: "", during: metrics };
  expect(await gateway.terminate()).toBe(0);
});
testAlert("SwitchyardCertificateExpires", () => shortLived);

test("an unreadable or invalid key is named at the start", async () => {
  const { cert } = certificate();
  const missing = await runProcess({
    yaml: `server: { tls: { cert: ${cert}, key: nowhere.pem } }\n`,
  });
  expect([missing.exitCode, missing.stderr]).toEqual([
    1,
    expect.stringMatching(/server\.tls\.key: \S+nowhere\.pem cannot be read/),
  ]);
  const path = join(temporaryDirectory(), "key.pem");
  writeFileSync(path, "no key\n");
  const broken = await runProcess({ yaml: `server: { tls: { cert: ${cert}, key: ${path} } }\n` });
  expect([broken.exitCode, broken.stderr]).toEqual([1, expect.stringContaining("server.tls.key")]);
});
