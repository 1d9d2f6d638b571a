import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { EndpointPaths } from "../../../src/http/endpoint-paths.ts";
import { exchangeAuthorizationCode } from "../../../src/endpoints/consent/key-mint.ts";
import { endpoints } from "../../../src/endpoints/index.ts";
import { createChildKey, createChildOfKey } from "../../../src/endpoints/keys/child-keys.ts";
import { createManagementKey } from "../../../src/endpoints/keys/management-keys.ts";
import { changeKey, createKey, rotateKey } from "../../../src/endpoints/keys/keys.ts";
import { withdrawRightsOf } from "../../../src/endpoints/keys/operator-rights.ts";
import { operatorOf } from "../../../src/endpoints/mcp/mcp.ts";
import {
  isOperatorsKey,
  type Caller,
  type KnownCaller,
} from "../../../src/identity/keys/caller.ts";
import { CredentialDirectory } from "../../../src/identity/keys/credential-directory.ts";
import { LlmKeyEditor } from "../../../src/identity/keys/llm-key-editor.ts";
import { LlmKeyMinter } from "../../../src/identity/keys/llm-key-minter.ts";
import {
  LlmKeyStore,
  type LlmKey,
  type LlmKeyTables,
} from "../../../src/identity/keys/llm-key-store.ts";
import {
  ManagementKeyStore,
  type ManagementKeyTables,
} from "../../../src/identity/keys/management-key-store.ts";
import { ManagementKeyEditor } from "../../../src/identity/keys/management-key-editor.ts";
import { coversScope, type Scope } from "../../../src/identity/keys/scopes.ts";
import { createSecretHasher } from "../../../src/identity/keys/secret-hasher.ts";
import { scopesOf } from "../../../src/identity/people/roles.ts";
import {
  WorkspaceStore,
  type WorkspaceTables,
} from "../../../src/identity/workspaces/workspace-store.ts";
import { GatewayError } from "../../../src/platform/kernel/errors.ts";
import { migrations } from "../../../src/platform/storage/migrations/index.ts";
import { openStorage } from "../../../src/platform/storage/open-storage.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { isNightly } from "../../support/nightly.ts";
import { seeded } from "../../support/seeded.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

type Tables = WorkspaceTables & LlmKeyTables & ManagementKeyTables;
type Answer = { key?: string; data?: { hash: string } };

/** Nightly more of them. */
const sequences = isNightly ? 5_000 : 1_000;
const stepsMax = 8;
const random = seeded(Number(process.env["PROPERTY_SEED"] ?? 28) || Date.now());
const pick = <Item>(items: readonly Item[]): Item => {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
};

const people = ["usr_boss", "usr_second", "usr_member"] as const;
type PersonId = (typeof people)[number];
const homeOf = (id: PersonId): string => id.replace("usr_", "ws_");
const team = "ws_team";

let storage: Awaited<ReturnType<typeof openStorage<Tables>>>;
let directory: CredentialDirectory;
let deps: Record<string, unknown>;
/** Who is an operator now, and who administers the team. */
const operators = new Set<string>();
const admins = new Set<string>();
let managementKeyEditor: ManagementKeyEditor;
const clock = new FakeClock();

/** Approved codes: the code is the person who approved. */
const consent = {
  codes: {
    noteMade: () => Promise.resolve(),
    take: ({ code: userId }: { code: PersonId }) =>
      Promise.resolve({
        ok: true,
        code: {
          purpose: "exchange",
          clientName: "app.example",
          userId,
          workspaceId: homeOf(userId),
          parentKeyId: null,
          terms: {
            label: null,
            limitNanoUsd: null,
            limitReset: null,
            expiresAtMs: null,
            allowedModels: null,
            scopes: [],
          },
        },
      }),
  },
  connections: { noteKey: () => Promise.resolve({ userId: "", scopes: [], workspaceId: "" }) },
};

beforeAll(async () => {
  storage = await openStorage<Tables>({
    url: `sqlite:${join(mkdtempSync(join(tmpdir(), "switchyard-power-")), "test.db")}`,
    durability: "process",
    migrations,
    commitStatements: { inserts: [], adds: [] },
  });
  const hasher = createSecretHasher(new Uint8Array(32).fill(7));
  const database = storage.database;
  const llmKeys = new LlmKeyStore(withTables(database));
  const managementKeys = new ManagementKeyStore(withTables(database));
  const workspaces = new WorkspaceStore(withTables(database));
  directory = new CredentialDirectory(hasher);
  for (const id of people) {
    await sql`insert into users (id, name, email, email_verified, created_at, updated_at, operator, two_factor_enabled)
              values (${id}, ${id}, ${id}, 1, '', '', 0, 0)`.execute(withTables(database));
    const own = {
      id: homeOf(id),
      name: id,
      plan: "payg",
      createdAtMs: 1,
      ownerUserId: id,
    } as const;
    await workspaces.insert(own);
    directory.putWorkspace(own);
  }
  const shared = { id: team, name: "Team", plan: "payg", createdAtMs: 1 } as const;
  await workspaces.insert(shared);
  directory.putWorkspace(shared);
  const parts = { directory, hasher, clock };
  managementKeyEditor = new ManagementKeyEditor({ ...parts, store: managementKeys });
  deps = {
    directory,
    clock,
    llmKeys,
    managementKeys,
    llmKeyMinter: new LlmKeyMinter({ ...parts, store: llmKeys }),
    llmKeyEditor: new LlmKeyEditor({ ...parts, store: llmKeys }),
    managementKeyEditor,
    endpointPaths: new EndpointPaths(endpoints),
    teamStore: { bindingTeams: () => Promise.resolve([]) },
    operatorWorkspaceId: homeOf("usr_boss"),
    security: { auditLog: { tell: () => Promise.resolve() } },
    ledger: {
      refresh: () => Promise.resolve(),
      book: { key: () => ({ spend: { total: 0n, spentWithin: () => 0n }, byok: undefined }) },
    },
    ledgerStore: { monthlyRequests: () => Promise.resolve(new Map()) },
    counters: { tiers: { tierFor: () => ({ perMinute: 60 }) } },
    people: {
      users: {
        find: (id: string) =>
          Promise.resolve({
            id,
            name: id,
            email: id,
            operator: operators.has(id),
            blockedAtMs: null,
          }),
      },
      sessions: { personalWorkspaceId: (id: PersonId) => Promise.resolve(homeOf(id)) },
      organizations: { of: () => Promise.resolve([]) },
    },
    consent,
  };
}, 240_000);
afterAll(() => storage.close());

interface Declared {
  access: { managementScope?: string; llmKey?: true; session?: true; open?: true };
  handle: unknown;
}

/** Asks an endpoint as the guard and the router do; undefined where it refuses. */
async function ask(
  endpoint: Declared,
  caller: Caller,
  { body = {}, hash = "" }: { body?: object; hash?: string } = {},
): Promise<Answer | undefined> {
  const { managementScope = "", llmKey, open } = endpoint.access;
  if (!open) {
    if (caller.kind === "llm-key" && !llmKey) return undefined;
    if (caller.kind === "management-key" && !coversScope(caller.key.scopes, managementScope))
      return undefined;
    if (caller.kind === "session" && !endpoint.access.session) return undefined;
  }
  const context = {
    caller,
    body,
    param: () => hash,
    clientAddress: () => "127.0.0.1",
    request: { headers: new Headers() },
    json: (value: unknown) => value,
  };
  try {
    return (await (endpoint.handle as (...given: unknown[]) => unknown)(context, deps)) as Answer;
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}

/** A person's session in a workspace. */
function session(userId: PersonId, workspaceId: string, fresh: boolean): KnownCaller {
  const workspace = directory.workspace(workspaceId);
  if (workspace === undefined) throw new Error("no such workspace");
  const role = workspaceId === homeOf(userId) ? "owner" : admins.has(userId) ? "admin" : "member";
  const startedAtMs = clock.nowMs() - (fresh ? 1_000 : 3_600_000);
  return {
    kind: "session",
    session: { id: "ses_1", startedAtMs, expiresAtMs: clock.nowMs() + 1e9 },
    user: {
      id: userId,
      name: "",
      email: userId,
      emailVerified: true,
      operator: operators.has(userId),
    },
    workspace,
    role,
    scopes: scopesOf(role),
  };
}

const narrow: readonly Scope[] = ["write:llm-keys"];
const programOf = (workspaceId: string): KnownCaller => ({
  kind: "management-key",
  key: {
    id: `mgk_${workspaceId}`,
    hash: "",
    workspaceId,
    name: "",
    description: null,
    scopes: narrow,
    label: "",
    createdAtMs: 1,
    expiresAtMs: null,
    revokedAtMs: null,
    revocationReason: null,
    creatorUserId: "usr_boss",
  },
  workspace: directory.workspace(workspaceId) ?? { id: "", name: "", plan: "payg", createdAtMs: 1 },
});

/** A key as the model knows it: its secrets, who received the last one, and which right was named. */
interface Known {
  secrets: string[];
  home: string;
  holder: string | undefined;
  /** The operator who named the right; undefined where none did, or it was lost. */
  named: string | undefined;
  isRoot: boolean;
  forInference: boolean;
}

/** An actor: the caller, and the operator as which it may name the right. */
interface Actor {
  caller: KnownCaller;
  person: PersonId | undefined;
  names: PersonId | undefined;
}

function actorIn(workspaceId: string): Actor {
  if (random() < 0.3)
    return { caller: programOf(workspaceId), person: undefined, names: undefined };
  const owner = people.find((id) => homeOf(id) === workspaceId);
  const person = owner ?? pick(people);
  const fresh = random() < 0.7;
  const names = owner !== undefined && fresh && operators.has(owner) ? owner : undefined;
  return { caller: session(person, workspaceId, fresh), person, names };
}

const noted = (known: Known[], answer: Answer | undefined, of: Omit<Known, "secrets">): void => {
  if (answer?.key !== undefined) known.push({ ...of, secrets: [answer.key] });
};
const rowOf = ({ secrets }: Known): LlmKey | undefined => {
  const found = directory.find(secrets.at(-1) ?? "");
  return found?.kind === "llm-key" ? found.key : undefined;
};

const steps: readonly ((known: Known[]) => Promise<void>)[] = [
  async function make(known) {
    const home = pick([...people.map(homeOf), team]);
    const { caller, person, names } = actorIn(home);
    const operator = random() < 0.5;
    const body = { name: "k", allowed_endpoints: null, ...(operator ? { operator } : {}) };
    const answer = await ask(createKey, caller, { body });
    noted(known, answer, {
      home,
      holder: person,
      named: operator ? names : undefined,
      isRoot: true,
      forInference: false,
    });
    if (operator) expect(answer !== undefined).toBe(names !== undefined);
  },
  async function approve(known) {
    const person = pick(people);
    const body = { code: person, code_verifier: "v" };
    const answer = await ask(
      exchangeAuthorizationCode,
      { kind: "anonymous", address: "" },
      { body },
    );
    noted(known, answer, {
      home: homeOf(person),
      holder: undefined,
      named: undefined,
      isRoot: true,
      forInference: true,
    });
  },
  async function change(known) {
    const key = known.length === 0 ? undefined : pick(known);
    const hash = key && rowOf(key)?.hash;
    if (key === undefined || hash === undefined) return;
    const { caller, names } = actorIn(key.home);
    const body = pick([
      { name: "other" },
      { allowed_endpoints: null },
      { operator: true },
      { operator: false },
    ]);
    const answer = await ask(changeKey, caller, { body, hash });
    if (answer === undefined) return;
    if ("allowed_endpoints" in body) key.forInference = false;
    if ("operator" in body) key.named = body.operator === true ? names : undefined;
    else if (key.named !== names) key.named = undefined;
    if ("operator" in body && body.operator === true) {
      expect([names !== undefined, key.holder === names]).toEqual([true, true]);
    }
  },
  async function rotate(known) {
    const key = known.length === 0 ? undefined : pick(known);
    const hash = key && rowOf(key)?.hash;
    if (key === undefined || hash === undefined) return;
    const { caller, person } = actorIn(key.home);
    const body = random() < 0.5 ? { grace_seconds: 60 } : {};
    clock.advance(2_000);
    const answer = await ask(rotateKey, caller, { body, hash });
    if (answer?.key === undefined) return;
    key.secrets.push(answer.key);
    key.holder = person;
    key.named = undefined;
  },
  async function inherit(known) {
    const key = known.length === 0 ? undefined : pick(known);
    const found = directory.find(key?.secrets.at(-1) ?? "");
    if (key === undefined || found?.kind !== "llm-key") return;
    const body = { name: "child", ...(random() < 0.5 ? { operator: true } : {}) };
    const byKey = random() < 0.5;
    const answer = byKey
      ? await ask(createChildKey, found, { body })
      : await ask(createChildOfKey, actorIn(key.home).caller, { body, hash: found.key.hash });
    noted(known, answer, { ...key, holder: undefined, named: undefined, isRoot: false });
  },
  async function demote(known) {
    const person = pick(["usr_boss", "usr_second"] as const);
    if (!operators.delete(person)) {
      operators.add(person);
      return;
    }
    const caller = session("usr_boss", homeOf("usr_boss"), true);
    await withdrawRightsOf({ caller, clientAddress: () => "" } as never, deps as never, person);
    for (const key of known) if (key.named === person) key.named = undefined;
  },
];

/** A management key as the model knows it. */
interface KnownProgram {
  secret: string;
  home: string;
  person: PersonId;
}

const wantedScopes: readonly (readonly Scope[])[] = [
  ["write:management-keys"],
  ["write:management-keys", "write:llm-keys"],
  ["read:credits", "write:byok", "write:security"],
  ["write:llm-keys"],
];

const programSteps: readonly ((programs: KnownProgram[]) => Promise<void>)[] = [
  async function makeProgram(programs) {
    const person = pick(people);
    const home = pick([team, homeOf(person)]);
    const body = { name: "p", scopes: pick(wantedScopes) };
    const answer = await ask(createManagementKey, session(person, home, true), { body });
    if (answer?.key !== undefined) programs.push({ secret: answer.key, home, person });
  },
  async function makeProgramByProgram(programs) {
    const maker = programs.length === 0 ? undefined : pick(programs);
    const found = maker && directory.find(maker.secret);
    if (maker === undefined || found === undefined) return;
    const answer = await ask(createManagementKey, found, {
      body: { name: "p", scopes: pick(wantedScopes) },
    });
    if (answer?.key !== undefined) programs.push({ ...maker, secret: answer.key });
  },
  async function changeRole() {
    const person = pick(people);
    if (!admins.delete(person)) {
      admins.add(person);
      return;
    }
    await managementKeyEditor.narrow(
      { workspaceId: team, creatorUserId: person },
      { bound: scopesOf("member"), reason: "" },
    );
  },
];

/** Compares the scopes of management keys with the roles of their people. */
function expectOnlyScopesOfRoles(programs: readonly KnownProgram[], trail: string): void {
  for (const { secret, home, person } of programs) {
    const found = directory.find(secret);
    if (found?.kind !== "management-key") continue;
    const held = scopesOf(home === team && !admins.has(person) ? "member" : "owner");
    expect([trail, found.key.scopes.filter((scope) => !coversScope(held, scope))]).toEqual([
      trail,
      [],
    ]);
    if (isOperatorsKey(found.key, homeOf("usr_boss")))
      expect([trail, operators.has(person)]).toEqual([trail, true]);
  }
}

/** Compares every secret that was ever issued with what was named for it. */
async function expectOnlyWhatWasNamed(known: readonly Known[], trail: string): Promise<void> {
  for (const key of known) {
    for (const [index, secret] of key.secrets.entries()) {
      const caller = directory.find(secret);
      if (caller?.kind !== "llm-key") continue;
      const isLast = index === key.secrets.length - 1;
      const operator = await operatorOf(caller, deps as never);
      expect([trail, operator?.user.id]).toEqual([trail, isLast ? key.named : undefined]);
      if (key.forInference) expect(caller.key.allowedEndpoints).not.toContain("/credits");
      if (key.forInference) expect(caller.key.allowedEndpoints?.length).toBeGreaterThan(0);
    }
  }
}

test(`no credential has more power than was named for it, in ${sequences} sequences`, async () => {
  let powerful = 0;
  for (let count = 0; count < sequences; count += 1) {
    operators.clear();
    operators.add("usr_boss");
    admins.clear();
    const known: Known[] = [];
    const programs: KnownProgram[] = [];
    const trail: string[] = [];
    const length = 2 + Math.floor(random() * (stepsMax - 1));
    for (let index = 0; index < length; index += 1) {
      if (index > 0 && random() < 0.25) {
        const step = pick(programSteps);
        trail.push(step.name);
        await step(programs);
        continue;
      }
      const step = index === 0 ? (steps[0] ?? pick(steps)) : pick(steps);
      trail.push(step.name);
      await step(known);
    }
    await expectOnlyWhatWasNamed(known, `${count}: ${trail.join(", ")}`);
    expectOnlyScopesOfRoles(programs, `${count}: ${trail.join(", ")}`);
    powerful += known.filter(({ named }) => named !== undefined).length;
    for (const secret of [
      ...known.map(({ secrets }) => secrets.at(-1) ?? ""),
      ...programs.map((program) => program.secret),
    ]) {
      const found = directory.find(secret);
      if (found !== undefined) directory.remove(found.key.id);
      if (found?.kind === "management-key")
        await managementKeyEditor.narrow(
          { workspaceId: found.key.workspaceId, creatorUserId: found.key.creatorUserId ?? "" },
          { bound: [], reason: "" },
        );
    }
  }
  // Rights that were named are there, so that the comparison is not of nothing.
  expect(powerful).toBeGreaterThan(sequences / 20);
}, 240_000);
