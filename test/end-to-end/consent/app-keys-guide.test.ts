import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { textAt } from "../api/at.ts";
import { type PeopledGateway, startAtOrigin } from "../api/people-browser.ts";
import { AppSide, decideAt, decideDevice, placeOf } from "./flows.ts";

const guide = readFileSync(join(import.meta.dir, "../../../docs/guides/app-keys.md"), "utf8");

/** The code block of a language of the guide about keys for apps, for a gateway at an origin. */
function blockOf(language: string, origin: string): string[] {
  const [, block = ""] = new RegExp(`\`\`\`${language}\n(.*?)\n\`\`\``, "s").exec(guide) ?? [];
  return block
    .replaceAll(/https:\/\/gateway\.example\.com|http:\/\/127\.0\.0\.1:8787/g, origin)
    .split("\n");
}

let people: PeopledGateway;
beforeAll(async () => {
  people = await startAtOrigin(undefined);
}, 240_000);
afterAll(() => people.stop());

const works = async (token: string): Promise<number> =>
  (await new AppSide(people.gateway().baseUrl).bearer(token, "/auth/key")).status;

/**
 * Runs a line of a page's script; `location` and `sessionStorage` are those of a browser, as far as
 * the lines use them.
 */
const AsyncFunction = Object.getPrototypeOf(async () => undefined)
  .constructor as FunctionConstructor;

test("the guide's JavaScript for a browser app obtains a working key", async () => {
  const [proof = "", leave = "", , exchange = ""] = blockOf("js", people.gateway().origin);
  const page = {
    location: { origin: "https://app.example", href: "" },
    sessionStorage: { verifier: "" },
  };
  await new AsyncFunction("location", "sessionStorage", `${proof}\n${leave}`)(
    page.location,
    page.sessionStorage,
  );
  const { pathname, search } = new URL(page.location.href);
  const back = placeOf(await decideAt(people.owner, pathname + search));
  expect(back.href).toStartWith("https://app.example/back?code=");
  const exchanged: unknown = await new AsyncFunction(
    "sessionStorage",
    "code",
    `${exchange}\nreturn { key };`,
  )(page.sessionStorage, back.searchParams.get("code"));
  expect(await works(textAt(exchanged, "key"))).toBe(200);
});

test("the README has the same code as the guide", () => {
  const readme = readFileSync(join(import.meta.dir, "../../../README.md"), "utf8");
  for (const language of ["js", "bash"]) {
    expect(readme).toContain(
      new RegExp(`\`\`\`${language}\n.*?\n\`\`\``, "s").exec(guide)?.[0] ?? "no block",
    );
  }
});

const programs = ["bash", "curl", "jq"];
const missing = programs.filter((name) => Bun.which(name) === null).join(", ");
test.skipIf(missing !== "")(
  `the guide's commands for a CLI obtain a working token${missing && ` (missing: ${missing})`}`,
  async () => {
    const [start = "", show = "", poll = ""] = blockOf("bash", people.gateway().origin);
    const shell = Bun.spawn(["bash", "-c", `${start}\n${show}\nread\n${poll}`], {
      stdin: "pipe",
      stdout: "pipe",
    });
    const output = shell.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const shown = (await output.read()).value ?? "";
    const userCode = /user_code=(\S+)/.exec(shown)?.[1] ?? "";
    expect((await decideDevice(people.owner, userCode)).status).toBe(200);
    shell.stdin.write("\n");
    await shell.stdin.end();
    let answer = "";
    for (let part = await output.read(); !part.done; part = await output.read())
      answer += part.value;
    expect(await works(textAt(JSON.parse(answer), "access_token"))).toBe(200);
  },
);
