import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { testLlmKey } from "../../support/gateway.ts";
import { clientStage, modelIn, upstreamDialects } from "../clients/support/client-stage.ts";
import { testClientsFolder } from "../clients/support/test-clients-folder.ts";

const packages = join(testClientsFolder, "python-google-adk");
const isInstalled = Bun.which("python3") !== null && existsSync(join(packages, "google", "adk"));
const stage = clientStage();

const call = { id: "call_oslo", name: "get_weather", arguments: { city: "Oslo" } };
const reasoning = { text: "One city only.", signature: "c2lnbmVkIGJ5IHRoZSBzY3JpcHQ=" };

test.skipIf(!isInstalled)(
  "an agent of the Agent Development Kit calls its tool and goes on, over every upstream dialect",
  async () => {
    const models = upstreamDialects.map(modelIn);
    const before = stage.upstream.requests.length;
    for (const _ of [...models, ...models])
      stage.upstream.say(
        { reasoning, text: ["Let me ", "look."], calls: [call] },
        { text: ["Sun ", "in Oslo."] },
        { text: ["Rain."] },
      );
    const script = fileURLToPath(new URL("python/adk_agent.py", import.meta.url));
    const child = Bun.spawn(["python3", script, ...models], {
      stdout: "pipe",
      stderr: "pipe",
      env: {
        PATH: process.env["PATH"] ?? "",
        PYTHONPATH: packages,
        PYTHONDONTWRITEBYTECODE: "1",
        GATEWAY_ORIGIN: stage.gateway.origin,
        GOOGLE_API_KEY: testLlmKey,
      },
    });
    const [output, errors] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect([await child.exited, errors.split("Traceback")[1] ?? ""]).toEqual([0, ""]);
    const told = output
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as { said: string[] });
    expect(told.map(({ said }) => said.join(""))).toEqual(
      [...models, ...models].map(() => "Let me look.Sun in Oslo.Rain."),
    );
    const bodies = stage.upstream.requests.slice(before).map(({ body }) => body);
    expect(bodies).toHaveLength(3 * told.length);
    for (const [index, body] of bodies.entries())
      if (index % 3 > 0) expect(body).toContain("weather of Oslo");
  },
);
