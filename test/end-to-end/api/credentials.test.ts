import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { coversScope } from "../../../src/identity/keys/scopes.ts";
import { scopesOf } from "../../../src/identity/people/roles.ts";
import { endpoints } from "../../../src/endpoints/index.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { isNightly } from "../../support/nightly.ts";
import { brand } from "../../../src/platform/kernel/brand.ts";
import { publicOrigin } from "./people-browser.ts";
import { at } from "./at.ts";
import { contract, type ContractRow } from "./credential-contract.ts";
import { signedInSessions, type SignedInSessions } from "./credential-sessions.ts";
import { familiesSeed, secrets, secretWithout } from "./credential-families.ts";
import { seedStorage, type SeededStorage } from "./seed-storage.ts";

interface Answer {
  status: number;
  code?: string;
  /** The error says which credential or scope is needed. */
  hinted?: true;
}

const accepted = ({ accepted: status = 200 }: ContractRow): Answer => ({ status });
const openTo = (row: ContractRow, refusal: Answer): Answer =>
  row.without === "open" ? accepted(row) : refusal;
const missing: Answer = { status: 401, code: "missing_api_key" };
const invalid: Answer = { status: 401, code: "invalid_api_key" };
const signIn: Answer = { status: 401, code: "authentication_required" };
const wrongFamily: Answer = { status: 401, code: "unauthorized", hinted: true };
const missed: Answer = { status: 404, code: "not_found" };
const noOperator: Answer = { status: 403, code: "forbidden" };
const lacksScope: Answer = { status: 403, code: "insufficient_scope", hinted: true };

const takesManagement = ({ scope, without, mcp }: ContractRow): boolean =>
  scope !== undefined || without === "optional" || mcp === true;

/**
 * The answer that is wanted, in the dialect of the endpoint: JSON-RPC has numbers for codes, and no
 * hints.
 */
const inDialect = ({ mcp }: ContractRow, { status, ...answer }: Answer): Answer =>
  mcp && answer.code !== undefined
    ? { status, code: status === 401 ? "-32001" : "-32000" }
    : { status, ...answer };

const takesSession = ({ scope, session }: ContractRow): boolean =>
  scope !== undefined || session === true;

/** What a session gets; the refusal is of those routes that take some sessions. */
const answerToSession = (row: ContractRow, refusal: Answer | undefined): Answer => {
  if (row.without !== undefined)
    return row.signedIn === undefined || refusal === signIn
      ? accepted(row)
      : { status: row.signedIn };
  return takesSession(row) ? (refusal ?? accepted(row)) : wrongFamily;
};

/**
 * A member is no operator and holds some scopes; whether a person runs the service does not depend
 * on the scopes of a workspace.
 */
const refusalOfMember = ({ scope, operator }: ContractRow): Answer | undefined => {
  if (operator) return noOperator;
  return scope === undefined || coversScope(scopesOf("member"), scope) ? undefined : lacksScope;
};

/** Sessions in the browser's way: what each sends as its cookie, and the answer it gets. */
const sessionFamilies: Record<
  string,
  { cookie: () => string; answer: (row: ContractRow) => Answer; unknown?: true }
> = {
  "a session of an owner": {
    cookie: () => sessions.owner(),
    answer: (row) => answerToSession(row, undefined),
  },
  "a session of a member, whose role holds some scopes": {
    cookie: () => sessions.member(),
    answer: (row) => answerToSession(row, refusalOfMember(row)),
  },
  "a session that has ended": {
    cookie: () => sessions.ended(),
    answer: (row) => answerToSession(row, signIn),
    unknown: true,
  },
};

const refusalOfLlmKey = ({ llmKeysMiss }: ContractRow): Answer =>
  llmKeysMiss ? missed : wrongFamily;

/** Every kind of credential: the `Authorization` header it is sent as, and the answer it gets. */
const families: Record<
  string,
  {
    header: (row: ContractRow) => string | undefined;
    answer: (row: ContractRow) => Answer;
    /** Nothing is known of the caller, so that every endpoint that is not open refuses it alike. */
    unknown?: true;
  }
> = {
  "no credential": {
    header: () => undefined,
    answer: (row) => (row.without === undefined ? (row.session ? signIn : missing) : accepted(row)),
  },
  garbage: {
    header: () => "Bearer garbage",
    answer: (row) => openTo(row, invalid),
    unknown: true,
  },
  "another scheme": {
    header: () => `Basic ${btoa(`user:${secrets.llm}`)}`,
    answer: (row) => openTo(row, invalid),
    unknown: true,
  },
  "an unknown or revoked LLM key": {
    header: () => `Bearer ${secrets.llmUnknown}`,
    answer: (row) => openTo(row, invalid),
    unknown: true,
  },
  "a disabled LLM key": {
    header: () => `Bearer ${secrets.llmDisabled}`,
    answer: (row) => openTo(row, invalid),
    unknown: true,
  },
  "an expired LLM key": {
    header: () => `Bearer ${secrets.llmExpired}`,
    answer: (row) => openTo(row, invalid),
    unknown: true,
  },
  "an LLM key": {
    header: () => `Bearer ${secrets.llm}`,
    answer: (row) => openTo(row, row.llm ? accepted(row) : refusalOfLlmKey(row)),
  },
  "an LLM key whose allowed_endpoints omit the route": {
    header: () => `Bearer ${secrets.llmElsewhere}`,
    answer: (row) =>
      openTo(row, row.ofItself ? accepted(row) : row.llm ? lacksScope : refusalOfLlmKey(row)),
  },
  "an unknown or revoked management key": {
    header: () => `Bearer ${secrets.managementUnknown}`,
    answer: (row) => openTo(row, invalid),
    unknown: true,
  },
  "an expired management key": {
    header: () => `Bearer ${secrets.managementExpired}`,
    answer: (row) => openTo(row, invalid),
    unknown: true,
  },
  "a management key with all scopes": {
    header: () => `Bearer ${secrets.management}`,
    answer: (row) => openTo(row, takesManagement(row) ? accepted(row) : wrongFamily),
  },
  "a management key of another workspace with all scopes": {
    header: () => `Bearer ${secrets.managementElsewhere}`,
    answer: (row) =>
      openTo(row, row.operator ? noOperator : takesManagement(row) ? accepted(row) : wrongFamily),
  },
  "a management key without the scope": {
    header: ({ scope }) =>
      `Bearer ${scope === undefined ? secrets.management : secretWithout(scope)}`,
    answer: (row) =>
      openTo(
        row,
        row.scope !== undefined ? lacksScope : takesManagement(row) ? accepted(row) : wrongFamily,
      ),
  },
};

let storage: SeededStorage;
let gateway: TestGateway;
let sessions: SignedInSessions;
beforeAll(async () => {
  storage = await seedStorage(familiesSeed);
  gateway = await startGateway({
    ...storage.settings,
    bootstrap: {
      llmKey: undefined,
      managementKey: undefined,
      creditsNanoUsd: undefined,
      plan: "enterprise",
    },
    trustProxy: true,
  });
  sessions = await signedInSessions(gateway);
});
afterAll(async () => {
  await gateway.stop();
  storage.remove();
});

let addresses = 0;
/**
 * Each request comes from an address of its own, so that none meets the limits of anonymous ones.
 */
const anotherAddress = (): string =>
  `10.${(addresses += 1) >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`;

async function ask(
  name: string,
  row: ContractRow,
  options: { base: string; headers: Record<string, string> },
): Promise<{ answer: Answer; body: unknown }> {
  const [method = "", pattern = ""] = name.split(" ");
  const response = await fetch(gateway.origin + options.base + (row.path ?? pattern), {
    method,
    redirect: "manual",
    headers: {
      "x-forwarded-for": anotherAddress(),
      "x-forwarded-proto": "https",
      ...(row.socket && { upgrade: "websocket", "sec-websocket-version": "13" }),
      ...options.headers,
    },
    ...(method === "GET" ? {} : { body: "{}" }),
  });
  const body: unknown = response.headers.get("content-type")?.startsWith("application/json")
    ? await response.json()
    : await response.text();
  const hinted = ["hint", "required_scope", "allowed_endpoints"].some(
    (name) => (at(body, `error.metadata.${name}`) ?? at(body, `metadata.${name}`)) !== undefined,
  );
  return {
    answer: {
      status: response.status,
      // Google has the status there, and Ollama a text for the error.
      code: String(
        at(body, "error.metadata.code") ??
          at(body, "metadata.code") ??
          at(body, "error.code") ??
          at(body, "code"),
      ),
      ...(hinted ? { hinted } : {}),
    },
    body,
  };
}

test("every endpoint has a row in this table, and every row an endpoint", () => {
  const table = endpoints.map(({ method, path }) => `${method} ${path}`);
  expect(Object.keys(contract).sort()).toEqual([...new Set(table)].sort());
});

const prefixes = ["/api/v1", "/v1"];

/** Of how many endpoints one is asked by a family of unknown callers by day; each is asked by some. */
const endpointsAnUnknown = 3;

/**
 * The prefixes at which a family of credentials asks an endpoint: both lead to one table of routes,
 * so that by default they take turns. Every endpoint is asked at both, and so is every family.
 */
const prefixesFor = (row: ContractRow, turn: number, isUnknown = false): readonly string[] => {
  if (isUnknown && !isNightly && turn % endpointsAnUnknown !== 0) return [];
  if (row.base === "root") return [""];
  return isNightly ? prefixes : prefixes.slice(turn % 2, (turn % 2) + 1);
};

for (const [place, [name, row]] of Object.entries(contract).entries()) {
  describe(name, () => {
    for (const [turn, [family, known]] of Object.entries(families).entries()) {
      const { header, answer, unknown: isUnknown } = known;
      test.each(prefixesFor(row, place + turn, isUnknown))(`${family} with %p`, async (base) => {
        const wanted = inDialect(row, answer(row));
        const authorization = header(row);
        const got = await ask(name, row, {
          base,
          headers: authorization === undefined ? {} : { authorization },
        });
        expect(got.answer).toMatchObject(wanted);
        if (wanted.code === undefined) expect([401, 403]).not.toContain(got.answer.status);
      });
    }
    for (const [turn, [family, known]] of Object.entries(sessionFamilies).entries()) {
      const { cookie, answer, unknown: isUnknown } = known;
      test.each(prefixesFor(row, place + turn, isUnknown))(`${family} with %p`, async (base) => {
        const wanted = inDialect(row, answer(row));
        const got = await ask(name, row, {
          base,
          headers: { cookie: `${brand.sessionCookie}=${cookie()}`, origin: publicOrigin },
        });
        expect(got.answer).toMatchObject(wanted);
        if (wanted.code === undefined) expect([401, 403]).not.toContain(got.answer.status);
        if (name.startsWith("POST") && name.endsWith("/sign-out"))
          sessions = await signedInSessions(gateway);
      });
    }
  });
}

test("every endpoint that accepts management keys also accepts sessions", () => {
  const without = endpoints.filter(
    ({ access }) => access.managementScope !== undefined && access.session === undefined,
  );
  expect(without.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
});
