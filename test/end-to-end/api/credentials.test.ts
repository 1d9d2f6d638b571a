import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Scope } from "../../../src/account/keys/scopes.ts";
import { endpoints } from "../../../src/endpoints/index.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { at } from "./at.ts";
import { familiesSeed, secrets, secretWithout } from "./credential-families.ts";
import { seedStorage, type SeededStorage } from "./seed-storage.ts";

/** Who may call an endpoint, as the contract has it. */
interface ContractRow {
  /** `open` looks at no credential; `optional` needs none but refuses a wrong one. */
  without?: "open" | "optional";
  llm?: true;
  /** Scope by which management keys are accepted. */
  scope?: Scope;
  /** A path that fits the endpoint, where it has parameters. */
  path?: string;
  /** What an accepted caller gets for this bare request; 200 unless named. */
  accepted?: number;
  base?: "root";
}

/** Contract: "Index", "Credential families" and "Scopes"; each endpoint of the table has its row here. */
const contract: Record<string, ContractRow> = {
  "POST /chat/completions": { llm: true, accepted: 400 },
  "GET /models": { without: "optional", llm: true },
  "GET /models/count": { without: "optional", llm: true },
  "GET /models/:owner/:model": {
    without: "optional",
    llm: true,
    path: "/models/nobody/nothing",
    accepted: 404,
  },
  "GET /models/:id": {
    without: "optional",
    llm: true,
    path: "/models/nobody%2Fnothing",
    accepted: 404,
  },
  "GET /providers": { without: "open" },
  "GET /logos/:file": { without: "open", path: "/logos/openai.svg", base: "root" },
  "POST /keys": { scope: "write:llm-keys", accepted: 400 },
  "GET /keys": { scope: "read:llm-keys" },
  "GET /auth/key": { llm: true },
  "GET /key": { llm: true, scope: "read:llm-keys" },
  "GET /credits": { llm: true, scope: "read:credits" },
  "GET /generation/:id": { llm: true, path: "/generation/gen_none", accepted: 404 },
  "GET /generation": { llm: true, path: "/generation?id=gen_none", accepted: 404 },
  "GET /openapi.json": { without: "open" },
  "GET /docs": { without: "open", base: "root" },
  "GET /healthz": { without: "open", base: "root" },
  "GET /readyz": { without: "open", base: "root" },
  "GET /metrics": { without: "open", base: "root" },
};

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
const wrongFamily: Answer = { status: 401, code: "unauthorized", hinted: true };
const lacksScope: Answer = { status: 403, code: "insufficient_scope", hinted: true };

const takesManagement = ({ scope, without }: ContractRow): boolean =>
  scope !== undefined || without === "optional";

/** Every kind of credential: the `Authorization` header it is sent as, and the answer it gets. */
const families: Record<
  string,
  { header: (row: ContractRow) => string | undefined; answer: (row: ContractRow) => Answer }
> = {
  "no credential": {
    header: () => undefined,
    answer: (row) => (row.without === undefined ? missing : accepted(row)),
  },
  garbage: { header: () => "Bearer garbage", answer: (row) => openTo(row, invalid) },
  "another scheme": {
    header: () => `Basic ${btoa(`user:${secrets.llm}`)}`,
    answer: (row) => openTo(row, invalid),
  },
  "an unknown or revoked LLM key": {
    header: () => `Bearer ${secrets.llmUnknown}`,
    answer: (row) => openTo(row, invalid),
  },
  "a disabled LLM key": {
    header: () => `Bearer ${secrets.llmDisabled}`,
    answer: (row) => openTo(row, invalid),
  },
  "an expired LLM key": {
    header: () => `Bearer ${secrets.llmExpired}`,
    answer: (row) => openTo(row, invalid),
  },
  "an LLM key": {
    header: () => `Bearer ${secrets.llm}`,
    answer: (row) => openTo(row, row.llm ? accepted(row) : wrongFamily),
  },
  "an LLM key whose allowed_endpoints omit the route": {
    header: () => `Bearer ${secrets.llmElsewhere}`,
    answer: (row) => openTo(row, row.llm ? lacksScope : wrongFamily),
  },
  "an unknown or revoked management key": {
    header: () => `Bearer ${secrets.managementUnknown}`,
    answer: (row) => openTo(row, invalid),
  },
  "an expired management key": {
    header: () => `Bearer ${secrets.managementExpired}`,
    answer: (row) => openTo(row, invalid),
  },
  "a management key with all scopes": {
    header: () => `Bearer ${secrets.management}`,
    answer: (row) => openTo(row, takesManagement(row) ? accepted(row) : wrongFamily),
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
  });
});
afterAll(async () => {
  await gateway.stop();
  storage.remove();
});

async function ask(
  name: string,
  row: ContractRow,
  options: { base: string; header: string | undefined },
): Promise<{ answer: Answer; body: unknown }> {
  const [method = "", pattern = ""] = name.split(" ");
  const response = await fetch(gateway.origin + options.base + (row.path ?? pattern), {
    method,
    headers: options.header === undefined ? {} : { authorization: options.header },
    ...(method === "GET" ? {} : { body: "{}" }),
  });
  const body: unknown = response.headers.get("content-type")?.startsWith("application/json")
    ? await response.json()
    : await response.text();
  const hinted = [
    at(body, "error.metadata.hint"),
    at(body, "error.metadata.required_scope"),
    at(body, "error.metadata.allowed_endpoints"),
  ].some((hint) => hint !== undefined);
  return {
    answer: {
      status: response.status,
      code: String(at(body, "error.code")),
      ...(hinted ? { hinted } : {}),
    },
    body,
  };
}

test("every endpoint of the table has a row here, and every row an endpoint", () => {
  const table = endpoints.map(({ method, path }) => `${method} ${path}`);
  expect(Object.keys(contract).sort()).toEqual(table.sort());
});

for (const [name, row] of Object.entries(contract)) {
  describe(name, () => {
    for (const [family, { header, answer }] of Object.entries(families)) {
      test.each(row.base === "root" ? [""] : ["/api/v1", "/v1"])(
        `${family} under %p`,
        async (base) => {
          const wanted = answer(row);
          const got = await ask(name, row, { base, header: header(row) });
          expect(got.answer).toMatchObject(wanted);
          if (wanted.code === undefined) expect([401, 403]).not.toContain(got.answer.status);
        },
      );
    }
  });
}
