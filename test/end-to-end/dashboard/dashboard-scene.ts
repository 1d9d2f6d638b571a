import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { BrowserContext, BrowserContextOptions } from "playwright-core";
import type { AppSettings } from "../../../src/app/settings-of.ts";
import { brand } from "../../../src/platform/kernel/brand.ts";
import { startChromium } from "../../support/chromium.ts";
import { acme, provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { fillWithLife } from "../../support/lively-records.ts";
import { putMigratedSqlite } from "../../support/migrated-sqlite.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import { textAt } from "../api/at.ts";
import { Browser } from "../api/people-browser.ts";
import { KeptWindows } from "../../support/kept-windows.ts";
import { startMcpUpstream, textTool } from "../../support/mcp-upstream/mcp-upstream.ts";
import { workInBatchesAndRuns } from "./lively-work.ts";
import { furnish, livelyProviders, makeLivelyKeys } from "./lively-workspace.ts";
import { RunningPages } from "./running-pages.ts";
import { openScreen, type Screen } from "./screen.ts";

const root = resolve(import.meta.dirname, "../../..");
const folder = join(root, "dashboard", "dist");

/** People of a scene: who runs the installation, and what the others are in the organisation. */
export const persons = {
  operator: "owner",
  owner: "owner",
  developer: "admin",
  member: "member",
} as const;
export type Person = keyof typeof persons;

/** Name, address and password of a person, all made of what they are. */
export const emailOf = (person: string): string => `${person}@example.com`;
export const passwordOf = (person: string): string => `the long password of ${person}`;

/** A light desktop, a dark one and a phone. */
const looks = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 800 } },
  phone: {
    colorScheme: "light",
    viewport: { width: 390, height: 844 },
    isMobile: true,
    hasTouch: true,
  },
} as const satisfies Record<string, BrowserContextOptions>;
export type Look = keyof typeof looks;

/**
 * A gateway with the dashboard, four people in one organisation, and a few requests of every
 * outcome.
 */
export interface DashboardScene {
  gateway: TestGateway;
  origin: string;
  /** The organisation that all of them work in, and its workspace. */
  organizationId: string;
  workspaceId: string;
  /** What a provider answers that is asked first and always fails; and the one that then serves. */
  failing: FaultUpstream;
  serving: FaultUpstream;
  /**
   * Sends JSON to the API as a person, and gives the JSON of the answer; throws where it is
   * refused.
   */
  ask(person: Person, method: string, path: string, body?: unknown): Promise<unknown>;
  /** Sends a chat request with the organisation's key; returns the answer of any status. */
  chat(body: Record<string, unknown>, headers?: Record<string, string>): Promise<Response>;
  /** The session cookie of a person. */
  cookieOf(person: Person): { name: string; value: string };
  /** Makes a window of a person who is signed in, with nothing in it yet. */
  window(person: Person, look?: Look, options?: BrowserContextOptions): Promise<BrowserContext>;
  /**
   * Opens a screen below `/dashboard` in a window of its own, signed in, and waits until it has
   * loaded; with `runsOn` as a link opens it, where a test before has closed such a window.
   */
  open(person: Person, path: string, look?: Look, options?: BrowserContextOptions): Promise<Screen>;
  /** The same signed out, at any path of the origin. */
  openSignedOut(path: string, look?: Look, options?: BrowserContextOptions): Promise<Screen>;
  stop(): Promise<void>;
}

let isBuilt = false;

/** Builds the dashboard where its sources are newer than what was built; once in this process. */
function buildDashboard(): void {
  if (isBuilt) return;
  const built = spawnSync(process.execPath, [join(root, "scripts", "build-dashboard.ts")], {
    encoding: "utf8",
  });
  if (built.status !== 0) throw new Error(`the dashboard could not be built: ${built.stderr}`);
  isBuilt = true;
}

interface Organisation {
  organizationId: string;
  workspaceId: string;
  people: Record<Person, Browser>;
}

/**
 * Leases the gateway, founds the organisation, and lets the others join it; all of them work in its
 * workspace.
 */
async function gather(gateway: () => TestGateway, origin: string): Promise<Organisation> {
  const browser = (): Browser => Object.assign(new Browser(gateway), { origin });
  const signUp = async (person: string, token: object): Promise<Browser> => {
    const own = browser();
    const joined = await own.ask("POST", "/api/auth/sign-up", {
      name: `${person[0]?.toUpperCase()}${person.slice(1)} Example`,
      email: emailOf(person),
      password: passwordOf(person),
      ...token,
    });
    if (!joined.ok) throw new Error(`${person} could not sign up: ${await joined.text()}`);
    return own;
  };
  const operator = await signUp("operator", { claim_token: await gateway().app.issueClaim() });
  const made = await operator.json("POST", "/organizations", { name: "Acme & Sons" });
  const [organizationId, workspaceId] = [textAt(made, "id"), textAt(made, "workspace_id")];
  const invited = async (person: Person): Promise<Browser> => {
    const invitation = await operator.json("POST", `/organizations/${organizationId}/invitations`, {
      email: emailOf(person),
      role: persons[person],
    });
    return signUp(person, {
      invitation_token: new URL(textAt(invitation, "url")).searchParams.get("token"),
    });
  };
  const people = {
    operator,
    owner: await invited("owner"),
    developer: await invited("developer"),
    member: await invited("member"),
  };
  for (const person of Object.values(people))
    await person.json("PATCH", "/session", { workspace_id: workspaceId });
  await operator.json("POST", "/admin/grants", {
    workspace_id: workspaceId,
    amount: 25,
    description: "A start",
  });
  return { organizationId, workspaceId, people };
}

const outOfOrder = { error: { message: "The model is out of order.", type: "server_error" } };
const hello = { model: "acme/large", messages: [{ role: "user", content: "Hello" }] };

/**
 * One request of each outcome: served after a failed attempt, streamed, free, and failed at every
 * provider.
 */
async function seed(chat: DashboardScene["chat"]): Promise<void> {
  for (const body of [
    hello,
    { ...hello, stream: true },
    { ...hello, model: "sandbox/chat:free" },
    { ...hello, model: "sandbox/chat:free", stream: true },
    { ...hello, model: "broken/small" },
  ])
    await (await chat(body, { "x-title": "Night watch", "user-agent": "night-watch/1.0" })).text();
}

const livelyTools = ["search", "read_page", "open_ticket"];

const providersOf = (serving: FaultUpstream, failing: FaultUpstream): AppSettings["providers"] => {
  const model = { upstream_model: "large-v2", context_length: 131_072 };
  return [
    acme(serving.baseUrl),
    provider({
      id: "broken",
      name: "Broken Inference",
      base_url: failing.baseUrl,
      dialect: "openai-chat",
      api_key: "upstream-secret",
      models: [
        // Cheaper than the other one, so that it is asked first.
        { id: "acme/large", ...model, pricing: { prompt: "0.01", completion: "0.02" } },
        { id: "broken/small", ...model, pricing: { prompt: "0.01", completion: "0.02" } },
      ],
    }),
  ];
};

interface SceneOptions extends Partial<AppSettings> {
  /** True leaves the dashboard running in windows that are closed, at no screen. */
  runsOn?: boolean;
  /** False leaves it without a request. */
  seeded?: boolean;
  /** Requests of the last month that the workspace begins with, of four providers and six keys. */
  livelyRows?: number;
}

/** Starts the browser, and opens windows of the people at an origin. */
async function openViews(origin: string, people: Record<Person, Browser>, runsOn: boolean) {
  const chromium = await startChromium();
  const windows = new KeptWindows(chromium, `${origin}/healthz`);
  const running = new RunningPages(windows, origin);
  const cookieOf = (person: Person): { name: string; value: string; httpOnly: true } => {
    const value = people[person].cookies.get(brand.sessionCookie);
    if (value === undefined) throw new Error(`${person} has no session`);
    return { name: brand.sessionCookie, value, httpOnly: true };
  };
  return {
    cookieOf,
    close: () => chromium.close(),
    async window(person, look = "light", options = {}) {
      const context = await chromium.newContext({ ...looks[look], ...options });
      await context.addCookies([{ ...cookieOf(person), url: origin }]);
      return context;
    },
    async open(person, path, look = "light", options = {}) {
      const looksSo = { ...looks[look], ...options };
      if (runsOn) return running.open(looksSo, cookieOf(person), path);
      const taken = await windows.take(looksSo, [cookieOf(person)]);
      return openScreen(taken.page, `${origin}/dashboard${path}`, taken.putBack);
    },
    async openSignedOut(path, look = "light", options = {}) {
      const taken = await windows.take({ ...looks[look], ...options }, []);
      return openScreen(taken.page, origin + path, taken.putBack);
    },
  } satisfies Pick<DashboardScene, "cookieOf" | "window" | "open" | "openSignedOut"> & {
    close(): Promise<void>;
  };
}

/** Starts one on a storage engine. */
export async function startDashboardScene(
  url?: string,
  { seeded = true, livelyRows = 0, runsOn = false, ...changes }: SceneOptions = {},
): Promise<DashboardScene> {
  buildDashboard();
  const directory = mkdtempSync(join(tmpdir(), "switchyard-scene-"));
  const isLively = livelyRows > 0;
  const [serving, failing] = await Promise.all([startFaultUpstream(), startFaultUpstream()]);
  failing.script(json(outOfOrder, { status: 500 }));
  const tools = startMcpUpstream(livelyTools.map((name) => textTool(name)));
  let origin = "";
  const settings: Partial<AppSettings> = {
    ...(isLively ? { storageUrl: await putMigratedSqlite(directory) } : {}),
    ...(url === undefined ? {} : { storageUrl: url }),
    sandbox: true,
    publicUrl: () => origin,
    ...(isLively && { mcp: { servers: [], allowedNetworks: ["127.0.0.0/8"], maxRounds: 4 } }),
    providers: isLively ? livelyProviders(serving) : providersOf(serving, failing),
    dashboard: { folder, buildScript: undefined },
    ...changes,
  };
  const start = async (): Promise<TestGateway> => {
    const started = await startGateway(settings);
    origin = `http://localhost:${new URL(started.origin).port}`;
    return started;
  };
  let gateway = await start();
  const { people, ...organisation } = await gather(() => gateway, origin);
  const ask: DashboardScene["ask"] = (person, method, path, body) =>
    people[person].json(method, path, body);
  const made = await ask("owner", "POST", "/keys", { name: "Night watch" });
  const key = textAt(made, "key");
  if (isLively) {
    const { keyIds, teams } = await makeLivelyKeys(ask, textAt(made, "data.id"));
    await workInBatchesAndRuns(ask, { baseUrl: gateway.baseUrl, key });
    await gateway.stop();
    const { workspaceId } = organisation;
    const plan = { rows: livelyRows, workspaceId, keyIds, teams, nowMs: Date.now(), days: 30 };
    fillWithLife(join(directory, "test.db"), plan);
    gateway = await start();
    for (const each of Object.values(people)) each.origin = origin;
    await furnish(ask, { workspaceId, toolsUrl: tools.url });
  }
  const chat: DashboardScene["chat"] = (body, headers = {}) =>
    fetch(`${gateway.baseUrl}/chat/completions`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    });
  if (seeded && !isLively) await seed(chat);
  const views = await openViews(origin, people, runsOn);
  return {
    gateway,
    origin,
    ...organisation,
    serving,
    failing,
    ask,
    chat,
    ...views,
    async stop() {
      await views.close();
      await gateway.stop();
      rmSync(directory, { recursive: true, force: true });
      await tools.stop();
      serving.stop();
      failing.stop();
    },
  };
}
