import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { temporaryDirectory } from "../../support/process.ts";
import { at } from "../api/at.ts";
import { signedInSessions } from "../api/credential-sessions.ts";

/** A curl block of the API reference. */
interface Snippet {
  /** The operation, such as `POST /keys`. */
  title: string;
  text: string;
}

/** Snippets that are not run, by their operation, and why. */
const notRun: readonly (readonly [operation: RegExp, why: string])[] = [
  [/^\w+ \/(?:live\/\*|realtime\/calls)$/, "answers 501 by design"],
  [/^GET \/(?:responses|realtime|realtime\/translations)$/, "opens a socket"],
  [/ \/(?:credits\/(?:top-ups|automatic|quote|invoices)|top-up|webhooks\/stripe)/, "needs Stripe"],
  [/ \/api\/auth\//, "needs a person's password, mail, passkey or provider"],
  [/ \/session\/(?:user|sign-in-methods)| \/sessions\//, "ends the person's way in"],
  [/ \/(?:mcp\/\{server\}|mcp-servers|connections|admin\/connections)/, "needs a server of tools"],
  [/\/mcp\/\{server\}$/, "needs a server of tools"],
  [/ \/(?:p\/\{provider\}|documents\/parse|openai\/deployments)/, "needs a provider's own API"],
  [
    / \/(?:hubs\/\{slug\}\/import|byok\/donated|admin\/(?:upstreams|configuration\/test))/,
    "needs another host",
  ],
  [/ \/(?:auth\/keys|oauth\/token|mcp\/oauth\/token|invitations\/accept)$/, "needs a consent"],
  [/ \/(?:referrals|managed\/settings)/, "is off unless the operator sets it"],
  [/ \/(?:images\/variations|images\/content|logos|docs\/\{)/, "needs a file of the reader's"],
  [/ \/images\/models\/\{owner\}/, "needs a model that makes pictures"],
  [
    / \/models\/\{id\}| \/v1beta\/models\/\{model\}| \/models\/\{owner\}\/\{model\}$|publishers\/anthropic/,
    "names a method",
  ],
  [
    /^(?:PATCH|DELETE) \/organizations\/\{id\}\/members|^DELETE \/admin\/users/,
    "is refused for the last owner",
  ],
  [/ \/teams\/\{id\}\/members/, "names a person of the workspace"],
  [/^GET \/generation\/content$/, "needs a workspace that keeps contents"],
  [/^(?:GET|DELETE) \/messages\/batches\/\{id\}(?:\/results)?$/, "needs one that has ended"],
  [/\/(?:responses|uploads)\/\{id\}\/cancel$/, "needs one that is in progress"],
];

/** The answers that give later snippets their names: the name, and its path in the answer. */
const given: Readonly<Record<string, readonly [name: string, path: string]>> = {
  "POST /keys": ["KEY_HASH", "data.hash"],
  "POST /keys/{hash}/rotate": ["KEY_HASH", "data.hash"],
  "POST /key/children": ["CHILDREN_HASH", "data.hash"],
  "POST /management-keys": ["MANAGEMENT_KEY_ID", "data.id"],
  "POST /budgets": ["BUDGET_ID", "data.id"],
  "POST /chat/completions": ["GENERATION_ID", "id"],
  "POST /responses": ["RESPONSE_ID", "id"],
  "POST /organizations": ["ORGANIZATION_ID", "id"],
  "POST /organizations/{id}/invitations": ["INVITATION_ID", "data.id"],
  "POST /files": ["FILE_ID", "id"],
  "POST /uploads": ["UPLOAD_ID", "id"],
  "POST /uploads/{id}/parts": ["PART_ID", "id"],
  "POST /batches": ["BATCH_ID", "id"],
  "POST /messages/batches": ["MESSAGE_BATCH_ID", "id"],
  "POST /presets": ["PRESET_SLUG", "slug"],
  "POST /aliases": ["ALIAS_NAME", "name"],
  "POST /auth/byok": ["KEY_ID", "id"],
  "POST /prompts": ["PROMPT_ID", "id"],
  "POST /skills": ["SKILL_ID", "id"],
  "POST /hubs": ["HUB_SLUG", "slug"],
  "POST /hubs/{slug}/items": ["ITEM", "slug"],
  "POST /conversations": ["CONVERSATION_ID", "id"],
  "POST /customers": ["CUSTOMER_ID", "id"],
  "POST /teams": ["TEAM_ID", "id"],
  "POST /runs": ["RUN_ID", "data.id"],
  "POST /admin/incidents": ["INCIDENT_ID", "id"],
  "POST /security/ip-allowlist": ["IP_ALLOWLIST_ID", "id"],
};

const methods = ["POST", "PATCH", "PUT", "GET", "DELETE"];
const methodOf = ({ title }: Snippet): string => title.split(" ")[0] ?? "";
const deletionRank = ({ title }: Snippet): number => (title.includes("/admin/") ? 0 : title.length);

/** Matches what the reader fills in, such as `KEY_HASH`; not variables of the shell. */
const nameForm = /(?<![A-Z_$])[A-Z]+(?:_[A-Z]+)+(?![A-Z_])|(?<=[/=])[A-Z]{2,}(?=[/:"?&])/g;

let gateway: TestGateway;
let folder: string;
let environment: Record<string, string>;
const names = new Map([
  ["VERSION", "1"],
  ["CONFIGURATION_SECTION", "aliases"],
  ["ID", "fast"],
  ["TASK", "translation"],
  ["MODEL_ID", "sandbox%2Fchat:free"],
]);
let snippets: Snippet[] = [];

beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
  const { owner } = await signedInSessions(gateway);
  environment = {
    PATH: process.env["PATH"] ?? "",
    SWITCHYARD_URL: "http://127.0.0.1",
    SWITCHYARD_KEY: testLlmKey,
    SWITCHYARD_MANAGEMENT_KEY: testManagementKey,
    SWITCHYARD_SESSION: owner(),
  };
  const cookie = `__session=${owner()}`;
  const session: unknown = await (
    await fetch(`${gateway.baseUrl}/session`, { headers: { cookie } })
  ).json();
  names.set("WORKSPACE_ID", String(at(session, "workspace.id")));
  names.set("USER_ID", String(at(session, "user.id")));
  folder = temporaryDirectory();
  writeFileSync(join(folder, "notes.txt"), "Hello");
  const body = { model: "sandbox/chat:free", messages: [{ role: "user", content: "Hello" }] };
  const line = { custom_id: "1", method: "POST", url: "/v1/chat/completions", body };
  writeFileSync(join(folder, "input.jsonl"), JSON.stringify(line));
  const index = await (await fetch(`${gateway.origin}/llms.txt`)).text();
  for (const page of new Set(index.match(/\/docs\/reference\/api-[a-z-]+/g)))
    snippets.push(...snippetsOf(await (await fetch(`${gateway.origin}${page}.md`)).text()));
  snippets = snippets.toSorted(
    (one, other) =>
      methods.indexOf(methodOf(one)) - methods.indexOf(methodOf(other)) ||
      // What is inside another goes before it, and operators delete what is left.
      (methodOf(one) === "DELETE" ? deletionRank(other) - deletionRank(one) : 0),
  );
}, 600_000);
afterAll(() => gateway.stop());

const snippetsOf = (page: string): Snippet[] =>
  page
    .split(/^## /m)
    .slice(1)
    .flatMap((part) => {
      const text = /^```sh\n([\s\S]*?)\n```$/m.exec(part)?.[1];
      return text === undefined ? [] : [{ title: part.split("\n")[0] ?? "", text }];
    });

const missingNames = ({ text }: Snippet): string[] =>
  [...text.matchAll(nameForm)]
    .map(([name]) => name)
    .filter((name) => !names.has(name) && !name.startsWith("SWITCHYARD_"));

/** Runs a snippet in a shell, as a reader would; returns what is wrong with its answer. */
async function problemOf({ title, text }: Snippet): Promise<string | undefined> {
  const own = title.includes("/messages/") ? text.replace("BATCH_ID", "MESSAGE_BATCH_ID") : text;
  const filled = own
    .replaceAll(nameForm, (name) => names.get(name) ?? name)
    .replaceAll(/http:\/\/127\.0\.0\.1(?::\d+)?(?=\/)/g, gateway.origin)
    .replace(/^curl /, "curl --silent --write-out '\\n%{http_code}' ");
  const child = Bun.spawn(["sh", "-c", filled], { cwd: folder, env: environment, stdout: "pipe" });
  const output = await new Response(child.stdout).text();
  const end = output.lastIndexOf("\n");
  const answer = output.slice(0, end);
  if (!output.slice(end + 1).startsWith("2")) return `${title}: ${output.slice(end + 1)} ${answer}`;
  const name = given[title];
  if (name !== undefined) names.set(name[0], String(at(JSON.parse(answer), name[1])));
  return undefined;
}

test("every curl block of the API reference is answered with success", async () => {
  expect(snippets.length).toBeGreaterThan(350);
  let rest = snippets.filter(({ title }) => !notRun.some(([operation]) => operation.test(title)));
  expect(rest.length).toBeGreaterThan(250);
  const problems: string[] = [];
  for (let next: Snippet | undefined; ; ) {
    next = rest.find((snippet) => missingNames(snippet).length === 0);
    if (next === undefined) break;
    rest = rest.filter((snippet) => snippet !== next);
    problems.push((await problemOf(next)) ?? "");
  }
  expect(problems.filter((problem) => problem !== "")).toEqual([]);
  expect(rest.map((snippet) => `${snippet.title} needs ${missingNames(snippet).join()}`)).toEqual(
    [],
  );
}, 600_000);

test("what is not run exists, so that the table names nothing that has gone", () => {
  const unknown = notRun.filter(
    ([operation]) => !snippets.some(({ title }) => operation.test(title)),
  );
  expect(unknown.map(([operation]) => String(operation))).toEqual([]);
});
