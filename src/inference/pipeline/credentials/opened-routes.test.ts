import { afterEach, expect, test } from "bun:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { routeIn } from "../../../../test/support/in-process.ts";
import type { KeyUse } from "../../../byok/provider-key-usage.ts";
import type { ProviderKeys } from "../../../byok/provider-keys.ts";
import { OpenedRoutes } from "./opened-routes.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { ProviderKey } from "../../../byok/provider-key.ts";

const key = (sealed: string): ProviderKey => ({
  id: "byok_1",
  workspaceId: "ws_1",
  providerId: "acme",
  label: "",
  preview: "",
  sealed,
  enabled: true,
  source: "api",
  quota: null,
  donation: null,
  createdAtMs: 0,
  updatedAtMs: null,
});

const base = routeIn("openai-chat");
const candidateWith = (sealed: string, source: KeyUse["source"] = "own_byok"): Candidate => ({
  ...base,
  modelIndex: 0,
  router: undefined,
  price: 1,
  reason: "",
  memberReason: "",
  credential: { key: key(sealed), source },
});

const clock = new FakeClock();
const errors: unknown[] = [];
const openedOf: string[] = [];
const secretOf = ({ sealed }: ProviderKey): string => {
  if (sealed === "damaged") throw new Error("it does not open");
  openedOf.push(sealed);
  return `secret of ${sealed}`;
};
const routes = new OpenedRoutes({
  providerKeys: { secretOf } as Partial<ProviderKeys> as ProviderKeys,
  clock,
  onError: (error) => void errors.push(error),
});
afterEach(() => routes.stop());

test("a route is opened once, with the BYOK key instead of the platform's credential", () => {
  const opened = routes.open(candidateWith("one"));
  expect(opened?.route.provider).toMatchObject({ id: "acme", apiKey: "secret of one" });
  expect(opened?.route.provider.signing).toBeUndefined();
  expect(base.route.provider.apiKey).toBe("k");
  expect(routes.open(candidateWith("one"))?.route).toBe(opened?.route as Candidate["route"]);
  expect(openedOf).toEqual(["one"]);
});

test("a pooled request gets another route for the same key, and the platform's route is unchanged", () => {
  const own = routes.open(candidateWith("one"))?.route;
  expect(routes.open(candidateWith("one", "pool"))?.route).not.toBe(own as Candidate["route"]);
  const { credential: _, ...platform } = candidateWith("one");
  expect(routes.open(platform)).toBe(platform);
});

test("a rotated key is opened again", () => {
  expect(routes.open(candidateWith("two"))?.route.provider.apiKey).toBe("secret of two");
  expect(routes.open(candidateWith("one"))?.route.provider.apiKey).toBe("secret of one");
});

test("a key is forgotten a minute after its last use", () => {
  openedOf.length = 0;
  routes.open(candidateWith("kept"));
  clock.advance(40_000);
  routes.forget();
  routes.open(candidateWith("kept"));
  clock.advance(40_000);
  routes.forget();
  routes.open(candidateWith("kept"));
  expect(openedOf).toEqual(["kept"]);
  clock.advance(60_000);
  routes.forget();
  expect(
    JSON.stringify([
      ...Object.values(routes)
        .filter((value) => value instanceof Map)
        .flatMap((map) => [...map]),
    ]),
  ).toBe("[]");
  routes.open(candidateWith("kept"));
  expect(openedOf).toEqual(["kept", "kept"]);
});

test("a key that cannot be decrypted is skipped and logged", () => {
  expect(routes.open(candidateWith("damaged"))).toBeUndefined();
  expect(errors).toHaveLength(1);
});
