import { afterAll, beforeAll, expect, test } from "bun:test";
import { endpoints } from "../../../src/endpoints/index.ts";
import { brand } from "../../../src/platform/kernel/brand.ts";
import { GatewayError } from "../../../src/platform/kernel/errors.ts";
import { FailingPostgres, type PostgresFault } from "../../support/failing-postgres.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { freshDatabase } from "../../support/postgres.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { isNightly } from "../../support/nightly.ts";
import { at } from "./at.ts";
import { contract, type ContractRow } from "./credential-contract.ts";
import { familiesSeed, secrets } from "./credential-families.ts";
import { signedInSessions, type SignedInSessions } from "./credential-sessions.ts";
import { publicOrigin } from "./people-browser.ts";
import { isObject, ProbedSchema, type Json } from "./schema-probes.ts";
import { seedStorage, type SeededStorage } from "./seed-storage.ts";

/** Ways to fail; every request meets those that are `whole`. */
const faults: readonly { name: string; fault: PostgresFault; whole?: true }[] = [
  { name: "refuses connections", fault: "refuses", whole: true },
  { name: "resets connections", fault: "resets" },
  { name: "is starting", fault: { code: "57P03" }, whole: true },
  { name: "is shut down by its administrator", fault: { code: "57P01" } },
  { name: "has no connection left", fault: { code: "53300" } },
  { name: "cancels statements that take too long", fault: { code: "57014" } },
  { name: "is out of memory", fault: { code: "53200" } },
  { name: "refuses the login", fault: { code: "28P01" } },
  { name: "answers nothing", fault: "hangs", whole: true },
];
/** The others differ in one place of the program: each request meets one of them, and nightly all. */
const divided = faults.filter(({ whole }) => whole !== true);

/** One request that an endpoint accepts, as far as its schema says. */
interface Sample {
  name: string;
  send(): Promise<Response>;
  /** The members of an error in the endpoint's dialect. */
  errorMembers: string[];
}

let proxy: FailingPostgres;
let storage: SeededStorage;
let gateway: TestGateway;
let sessions: SignedInSessions;
let samples: Sample[];
beforeAll(async () => {
  const url = new URL(await freshDatabase());
  storage = await seedStorage(familiesSeed, url.href);
  proxy = new FailingPostgres({ host: url.hostname, port: Number(url.port) });
  url.port = String(await proxy.listen());
  gateway = await startGateway({
    ...storage.settings,
    storageUrl: url.href,
    sandbox: true,
    bootstrap: {
      llmKey: undefined,
      managementKey: undefined,
      creditsNanoUsd: undefined,
      plan: "enterprise",
    },
    trustProxy: true,
  });
  sessions = await signedInSessions(gateway);
  samples = await samplesOf();
}, 240_000);
afterAll(async () => {
  await gateway.stop();
  await proxy.close();
  storage.remove();
}, 240_000);

let addresses = 0;
const anotherAddress = (): string =>
  `10.${(addresses += 1) >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`;

const cookieOfOwner = () => ({
  cookie: `${brand.sessionCookie}=${sessions.owner()}`,
  origin: publicOrigin,
});

/** The credentials that an endpoint accepts, each of which it may look up in another way. */
function credentialsOf({ without, llm, scope, session, mcp }: ContractRow) {
  const found: [name: string, headers: () => Record<string, string>][] = [];
  if (without !== undefined) found.push(["nobody", () => ({})]);
  if (without === "open") found.push(["a person", cookieOfOwner]);
  if (llm === true || mcp === true)
    found.push(["an LLM key", () => ({ authorization: `Bearer ${secrets.llm}` })]);
  if (llm === true)
    found.push(["an unknown LLM key", () => ({ authorization: `Bearer ${secrets.llmUnknown}` })]);
  if (scope !== undefined)
    found.push(["a management key", () => ({ authorization: `Bearer ${secrets.management}` })]);
  if (scope !== undefined || session === true) found.push(["a person", cookieOfOwner]);
  return found;
}

const model = "sandbox/chat:free";
const messages = [{ role: "user", content: "Hello" }];
const call = (name: string, args = {}) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name, arguments: args },
});
/** Bodies of endpoints whose schema does not lead to a request that is served. */
const bodies: Record<string, Json> = {
  "POST /chat/completions": { model, messages },
  "POST /messages": { model, max_tokens: 50, messages },
  "POST /messages/count_tokens": { model, messages },
  "POST /responses": { model, input: "Hello" },
  "POST /responses/compact": { model, input: "Hello" },
  "POST /responses/input_tokens": { model, input: "Hello" },
  "POST /routing/explain": { model, messages },
  "POST /embeddings": { model: "sandbox/embed:free", input: "Hello" },
  "POST /mcp": call("get_credits"),
};

/** A body that fits the published schema of an operation; undefined where it takes none. */
function exampleOf(document: unknown, name: string): unknown {
  if (bodies[name] !== undefined) return bodies[name];
  const [method = "", path = ""] = name.split(" ");
  const operation = at(document, "paths");
  const published = isObject(operation)
    ? Object.entries(operation).find(([each]) => each === path.replaceAll(/:(\w+)/g, "{$1}"))?.[1]
    : undefined;
  const content = at(published, `${method.toLowerCase()}.requestBody.content`);
  const schema = isObject(content) ? at(content["application/json"], "schema") : undefined;
  if (!isObject(schema)) return {};
  const components = at(document, "components.schemas");
  return new ProbedSchema(schema, isObject(components) ? components : {}).example(schema);
}

async function samplesOf(): Promise<Sample[]> {
  const document: unknown = await (await gateway.get("/openapi.json")).json();
  return Object.entries(contract).flatMap(([name, row]) => {
    const [method = "", pattern = ""] = name.split(" ");
    const endpoint = endpoints.find((each) => each.method === method && each.path === pattern);
    const error = new GatewayError("service_unavailable", "");
    const errorMembers = Object.keys(endpoint?.encodeError(error, { traceId: "t" }) ?? {});
    const base = row.base === "root" ? "" : "/api/v1";
    const wanted = new Map(
      [{}, exampleOf(document, name)].map((body) => [JSON.stringify(body), body]),
    );
    const texts = method === "GET" ? [undefined] : [...wanted.keys()];
    return credentialsOf(row).flatMap(([credential, headers]) =>
      texts.map((body) => ({
        name: `${name} by ${credential} ${body ?? ""}`,
        errorMembers,
        send: () =>
          fetch(gateway.origin + base + (row.path ?? pattern), {
            method,
            redirect: "manual",
            headers: {
              "x-forwarded-for": anotherAddress(),
              "x-forwarded-proto": "https",
              ...(body !== undefined && { "content-type": "application/json" }),
              ...headers(),
            },
            ...(body !== undefined && { body }),
          }),
      })),
    );
  });
}

/** What is wrong with the answer to a sample while the database fails; undefined where nothing is. */
async function mistakeIn({ name, send, errorMembers }: Sample, count: { away: number }) {
  const response = await send();
  const text = await response.text();
  const shown = `${name}: ${response.status} ${text.slice(0, 300)}`;
  // The document of the API names every code, and an unreadable image is answered 502.
  const isList = name.startsWith("GET /openapi.json");
  if (text.includes('"ocr_extraction_error"')) return undefined;
  if (response.status < 500 || response.status === 501)
    return !isList && /internal_server_error|-32603/.test(text) ? shown : undefined;
  count.away += 1;
  if (response.status !== 503) return shown;
  if (name.startsWith("GET /readyz")) return undefined;
  if (response.headers.get("retry-after") === null) return `no Retry-After: ${shown}`;
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  if (!isJson) return undefined;
  const members = Object.keys(JSON.parse(text) as Json);
  return members.join() === errorMembers.join() ? undefined : `another dialect: ${shown}`;
}

/** What reads the database is refused by some 300 of the requests. */
const leastAway = 300;

/** Expects of so many requests that they are refused as they should be while the database fails. */
async function expectRefusals(fault: PostgresFault, asked: readonly Sample[]): Promise<void> {
  await proxy.become(fault);
  const count = { away: 0 };
  const mistakes = await Promise.all(asked.map((sample) => mistakeIn(sample, count)));
  expect(mistakes.filter((mistake) => mistake !== undefined)).toEqual([]);
  expect(count.away).toBeGreaterThan((leastAway / samples.length) * asked.length * 0.8);
}

test.each(faults)(
  "every endpoint answers 503 with Retry-After in its dialect while the database $name",
  (each) => {
    const isMet = (_: Sample, index: number): boolean =>
      each.whole === true || isNightly || divided[index % divided.length] === each;
    return expectRefusals(each.fault, samples.filter(isMet));
  },
  240_000,
);

test("every endpoint answers again once the database works", async () => {
  await proxy.become("works");
  const readyz = () => fetch(`${gateway.origin}/readyz`);
  await pollUntil(async () => (await readyz()).status === 200);
  // Readiness is asked above: it may notice a broken connection of the pool once more.
  let failing = samples.filter(
    ({ name }) => name.startsWith("GET ") && !name.startsWith("GET /readyz "),
  );
  // A connection that still hangs may be noticed while they are asked: those refused are asked again.
  let rounds = 0;
  await pollUntil(async () => {
    rounds += 1;
    const statuses = await Promise.all(failing.map(async ({ send }) => (await send()).status));
    failing = failing.filter((_, index) => {
      const status = statuses[index] ?? 0;
      return status >= 500 && status !== 501;
    });
    return failing.length === 0 || rounds === 50;
  });
  expect(failing.map(({ name }) => name)).toEqual([]);
}, 240_000);
