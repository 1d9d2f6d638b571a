import { type Preset, usePreset } from "../../src/identity/presets/preset.ts";
import {
  providerIdIn,
  type CatalogModel,
  type CatalogSnapshot,
} from "../../src/inference/catalog/model.ts";
import type { PlanTrail } from "../../src/inference/pipeline/plan/plan-call.ts";
import {
  HealthWindows,
  type ProviderState,
} from "../../src/inference/routing/health/health-windows.ts";
import { StickySessions } from "../../src/inference/routing/sticky-sessions.ts";
import { GatewayError } from "../../src/platform/kernel/errors.ts";
import { FakeClock } from "./fake-clock.ts";
import {
  chatSurfaces,
  dialectOf,
  planBody,
  planDependencies,
  type Body,
  type ChatSurface,
} from "./planned-body.ts";
import { readCatalog, readRoute, thousands, type RoutingRow } from "./routing-table.ts";
import { spellBody, type Wanted } from "./surface-body.ts";

/** The plan of a row, in the words of the table's last columns. */
export interface RoutingOutcome {
  order: string;
  why: string;
  plan: PlanTrail | undefined;
}

type Words<Target> = readonly (readonly [
  RegExp,
  (match: RegExpExecArray, target: Target) => void,
])[];

/** The situation that a row describes. */
interface Situation extends Wanted {
  health: HealthWindows;
  sessions: StickySessions;
  states: Map<string, ProviderState>;
  blocked: string[];
  demandsZdr: boolean;
  allowed: string[] | null;
  forced?: string[];
  inputTokens?: number;
  /** Fields of the `provider` object of a preset that the request names. */
  preset: string[];
  surfaces: readonly ChatSurface[];
}

const stateNames: Readonly<Record<string, ProviderState>> = {
  deprioritized: "deprioritized",
  quarantined: "quarantined",
  excluded: "excluded",
  "over its budget": "budget_exhausted",
};

const presentWords: Words<Situation> = [
  [/^(\S+) is out$/, ([, id = ""], { health }) => [1, 2].forEach(() => health.recordFailure(id))],
  [
    /^(\S+) is out for (\S+)$/,
    ([, id = "", model], { health }) => {
      // Most of the provider's attempts succeed, those of the model do not.
      [1, 2, 3].forEach(() => health.recordSuccess(id));
      [1, 2].forEach(() => health.recordFailure(id, `acme/${model}`));
    },
  ],
  [
    /^(\S+) is (deprioritized|quarantined|excluded|over its budget)$/,
    ([, id = "", state = ""], { states }) => {
      states.set(id, stateNames[state] as ProviderState);
    },
  ],
  [
    /^(\S+) begins in (.+) s$/,
    ([, id = "", times = ""], { health }) =>
      times
        .split(" ")
        .forEach((seconds) => health.recordSuccess(id, { firstTokenMs: Number(seconds) * 1_000 })),
  ],
  [
    /^(\S+) makes (.+) tok\/s$/,
    ([, id = "", rates = ""], { health }) =>
      rates
        .split(" ")
        .forEach((rate) => health.recordSuccess(id, { tokensPerSecond: Number(rate) })),
  ],
  [
    /^session was at (\S+)@(\S+)(?: for (\S+))?$/,
    ([, model = "", id = "", asked], { sessions }) => {
      const served = readCatalog([`${model}: ${id} 1 USD`]).models.get(
        `acme/${model}`,
      ) as CatalogModel;
      const route = readRoute(`${id} 1 USD`);
      sessions.recordServed(
        { workspaceId: "ws", id: "s" },
        {
          requestedModel: asked ?? `acme/${model}`,
          candidate: {
            model: served,
            route,
            modelIndex: 0,
            router: undefined,
            price: 0,
            reason: "",
            memberReason: "",
          },
        },
      );
    },
  ],
  [
    /^workspace blocks (.+)$/,
    ([, ids = ""], { blocked }) => void blocked.push(...ids.split(" and ")),
  ],
  [/^workspace demands zdr$/, (_, situation) => void (situation.demandsZdr = true)],
];

const requestWords: Words<Situation> = [
  [
    /^model (.+)$/,
    ([, models = ""], wanted) => {
      wanted.models = models
        .split(" then ")
        .map((id) => (id.startsWith("service/") ? id : `acme/${id}`));
    },
  ],
  [/^(tools|JSON|images|temperature)$/, ([word = ""], { extras }) => void extras.add(word)],
  [/^(\d+k?) tokens in$/, ([, size = ""], wanted) => void (wanted.inputTokens = thousands(size))],
  [
    /^(\d+k?) tokens out$/,
    ([, size = ""], wanted) => void (wanted.maxOutputTokens = thousands(size)),
  ],
  [/^effort (\S+)$/, ([, effort = ""], wanted) => void (wanted.effort = effort)],
  [
    /^key may use (.+)$/,
    ([, ids = ""], wanted) => void (wanted.allowed = ids.split(" and ").map((id) => `acme/${id}`)),
  ],
  [/^header names (.+)$/, ([, ids = ""], wanted) => void (wanted.forced = ids.split(" then "))],
  [/^preset says (\w+: .+)$/, ([, field = ""], { preset }) => void preset.push(field)],
  [/^beside it (\w+: .+)$/, ([, field = ""], { beside }) => void beside.push(field)],
  [
    /^on (chat|messages|responses)(?: and (messages|responses))?$/,
    ([, one, other], wanted) => {
      wanted.surfaces = chatSurfaces.filter((surface) => surface === one || surface === other);
    },
  ],
];

/** Applies the known words to the situation, and returns the others. */
function obey(said: readonly string[], words: Words<Situation>, situation: Situation): string[] {
  return said
    .map((word) => word.trim())
    .filter((word) => {
      const known = words.find(([pattern]) => pattern.test(word));
      known?.[1](known[0].exec(word) as RegExpExecArray, situation);
      return known === undefined && word !== "";
    });
}

function read({
  catalog,
  given,
}: Pick<RoutingRow, "catalog" | "given">): Situation & { clock: FakeClock } {
  const clock = new FakeClock();
  const states = new Map<string, ProviderState>();
  const situation: Situation = {
    states,
    health: new HealthWindows(clock, (id) => states.get(id)),
    sessions: new StickySessions(clock),
    blocked: [],
    demandsZdr: false,
    models: [[...catalog.models.keys()][0] ?? ""],
    extras: new Set(),
    fields: [],
    beside: [],
    allowed: null,
    preset: [],
    surfaces: chatSurfaces,
  };
  situation.fields = obey(obey(given.split(";"), presentWords, situation), requestWords, situation);
  const nonsense = situation.fields.filter((field) => !/^\w+: /.test(field));
  if (nonsense.length > 0) throw new Error(`the table says ${JSON.stringify(nonsense)}`);
  return { ...situation, clock };
}

/** Returns the surfaces that a row covers: all chat-like ones unless it names others. */
export const surfacesOf = (row: Pick<RoutingRow, "catalog" | "given">): readonly ChatSurface[] =>
  read(row).surfaces;

/** Plans the request of a row on a surface. `random` 0 draws the cheapest route. */
export function planRow(
  row: Pick<RoutingRow, "catalog" | "given">,
  { surface, random = () => 0 }: { surface: ChatSurface; random?: () => number },
): RoutingOutcome {
  const situation = read(row);
  const {
    allowed: allowedModels,
    forced: forcedProviders,
    inputTokens,
    blocked,
    demandsZdr,
  } = situation;
  const deps = planDependencies(row.catalog, {
    ...situation,
    random,
    privacy: { zdr: demandsZdr, blockedProviders: blocked },
  });
  try {
    // A conversation with a name draws by its name, so it has one only where the row has a session.
    const session = situation.sessions.size > 0 ? "s" : undefined;
    const body = withPreset(spellBody(surface, { ...situation, session }), {
      surface,
      ...situation,
      catalog: row.catalog,
    });
    const plan = planBody(deps, { surface, body, allowedModels, forcedProviders, inputTokens });
    return { ...inWords(plan, row.catalog), plan };
  } catch (error) {
    if (error instanceof GatewayError)
      return { order: `refused: ${error.param ?? error.code}`, why: error.code, plan: undefined };
    throw error;
  }
}

/** Returns the body after a preset with these fields in its `provider` object was applied. */
function withPreset(
  body: Body,
  {
    surface,
    preset: fields,
    catalog,
  }: { surface: ChatSurface; preset: readonly string[]; catalog: CatalogSnapshot },
): Body {
  if (fields.length === 0) return body;
  const config = {
    model: String(body["model"]),
    provider: Bun.YAML.parse(`{${fields.join(", ")}}`) as Record<string, unknown>,
  };
  const preset: Preset = {
    id: "prs_1",
    workspaceId: "ws",
    slug: "mine",
    name: "Mine",
    description: null,
    config,
    version: 1,
    createdAtMs: 0,
    updatedAtMs: 0,
  };
  const named = { ...body, model: "@preset/mine" };
  return usePreset(
    { resolvePreset: () => preset },
    {
      workspaceId: "ws",
      presetFields: dialectOf(surface).presetFields,
      text: JSON.stringify(named),
      body: named,
      providerIdOf: (name) => providerIdIn(catalog, name) ?? name.toLowerCase(),
    },
  ).body;
}

function inWords(
  { candidates, emptiedBy, moved }: PlanTrail,
  { models }: CatalogSnapshot,
): { order: string; why: string } {
  const nameOf = ({ model, route }: PlanTrail["candidates"][number]): string =>
    models.size === 1
      ? route.provider.id
      : `${model.id.slice("acme/".length)}@${route.provider.id}`;
  return {
    order:
      candidates.length === 0
        ? `nobody: ${emptiedBy}`
        : candidates.map(nameOf).join(", ") + (moved ? " (moved)" : ""),
    why: candidates[0]?.reason ?? "",
  };
}
