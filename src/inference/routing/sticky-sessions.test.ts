import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import type { Candidate } from "./candidate.ts";
import { StickySessions } from "./sticky-sessions.ts";

const at = (provider: string, model = "acme/large", modelIndex = 0): Candidate => ({
  model: { id: model } as CatalogModel,
  route: { provider: { id: provider } } as UpstreamRoute,
  modelIndex,
  router: undefined,
  price: 0,
  reason: "",
  memberReason: "",
});

const session = { workspaceId: "ws_1", id: "chat" };
const serve = (sessions: StickySessions, candidate: Candidate, asked = session): boolean =>
  sessions.recordServed(asked, { requestedModel: "acme/large", candidate });
const providerOf = (
  sessions: StickySessions,
  asked = session,
  model = "acme/large",
): string | undefined => sessions.lastPlace(asked, model)?.provider;

test("a session stays with its last provider, and moves only to another provider", () => {
  const sessions = new StickySessions(new FakeClock());
  expect(providerOf(sessions)).toBeUndefined();
  expect([serve(sessions, at("a")), serve(sessions, at("a")), serve(sessions, at("b"))]).toEqual([
    false,
    false,
    true,
  ]);
  expect(providerOf(sessions)).toBe("b");
});

test("sessions are separate by workspace, id and model", () => {
  const sessions = new StickySessions(new FakeClock());
  serve(sessions, at("a"));
  expect(providerOf(sessions, { workspaceId: "ws_2", id: "chat" })).toBeUndefined();
  expect(providerOf(sessions, { workspaceId: "ws_1", id: "other" })).toBeUndefined();
  expect(providerOf(sessions, session, "acme/small")).toBeUndefined();
  // A session may have any name, also one that looks like another key.
  serve(sessions, at("b"), { workspaceId: "ws_1", id: "x\nacme/large\nchat" });
  expect(providerOf(sessions)).toBe("a");
});

test("a fallback to another model is a move and is not stored", () => {
  const sessions = new StickySessions(new FakeClock());
  serve(sessions, at("a"));
  expect(serve(sessions, at("c", "acme/small", 1))).toBe(true);
  expect(providerOf(sessions)).toBe("a");
});

test("a session expires an hour after its last use", () => {
  const clock = new FakeClock();
  const sessions = new StickySessions(clock);
  serve(sessions, at("a"));
  clock.advance(59 * 60_000);
  serve(sessions, at("a"));
  clock.advance(59 * 60_000);
  expect(providerOf(sessions)).toBe("a");
  clock.advance(60_000);
  expect(providerOf(sessions)).toBeUndefined();
  expect(serve(sessions, at("b"))).toBe(false);
});

test("beyond the maximum, the least recently used session is dropped", () => {
  const sessions = new StickySessions(new FakeClock(), { entriesMax: 2 });
  const named = (id: string) => ({ workspaceId: "ws_1", id });
  for (const id of ["one", "two", "one", "three"]) serve(sessions, at("a"), named(id));
  expect(sessions.size).toBe(2);
  expect(["one", "two", "three"].map((id) => providerOf(sessions, named(id)))).toEqual([
    "a",
    undefined,
    "a",
  ]);
});
