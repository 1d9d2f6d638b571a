import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  endProcesses,
  startProcess,
  temporaryDirectory,
  type GatewayProcess,
} from "../../support/process.ts";

afterAll(endProcesses);

const linkLine =
  /^Dashboard {2}(\S+)\/claim\?token=([0-9A-Za-z]{43}) {3}\(claims the owner account, valid for a day\)$/m;

const linkOf = ({ stdoutLines }: GatewayProcess): RegExpExecArray | null =>
  linkLine.exec(stdoutLines.join("\n"));

const claim = ({ url }: GatewayProcess, token: string): Promise<Response> =>
  fetch(`${url}/api/auth/sign-up`, {
    method: "POST",
    body: JSON.stringify({
      name: "Owner",
      email: "owner@example.com",
      password: "a password of some length",
      claim_token: token,
    }),
  });

test("the owner claim link is printed only to the terminal, with a new token at every start until used", async () => {
  const dataDirectory = temporaryDirectory();
  const first = await startProcess({ dataDirectory });
  const [, url, replaced = ""] = linkOf(first) ?? [];
  expect(url).toBe(first.url);
  expect(first.stderrText).not.toContain(replaced);
  await first.terminate();
  for (const name of readdirSync(dataDirectory)) {
    expect([name, readFileSync(join(dataDirectory, name), "latin1").includes(replaced)]).toEqual([
      name,
      false,
    ]);
  }
  const second = await startProcess({ dataDirectory });
  const token = linkOf(second)?.[2] ?? "";
  expect(token).not.toBe(replaced);
  expect((await claim(second, replaced)).status).toBe(403);
  expect((await claim(second, token)).status).toBe(200);
  expect((await claim(second, token)).status).toBe(403);
  expect(second.stderrText).not.toContain(token);
  await second.terminate();
  const third = await startProcess({ dataDirectory });
  expect(linkOf(third)).toBeNull();
  expect((await claim(third, token)).status).toBe(403);
});
