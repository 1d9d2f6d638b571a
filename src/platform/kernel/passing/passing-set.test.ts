import { expect, test } from "bun:test";
import { type Passing, PassingSet } from "./passing-set.ts";
import { PassingMap } from "./passing-map.ts";

interface Named extends Passing {
  name: string;
}

const named = (name: string): Named => ({ name, place: -1 });

function namesIn(set: PassingSet<Named>): string[] {
  const names: string[] = [];
  set.forEach(({ name }) => names.push(name));
  return names.sort();
}

test("PassingSet contains the members that were added and not deleted", () => {
  const set = new PassingSet<Named>();
  const [first, second, third] = [named("first"), named("second"), named("third")];
  for (const member of [first, second, third, second]) set.add(member);
  expect(set.size).toBe(3);
  set.delete(first);
  set.delete(first);
  expect(namesIn(set)).toEqual(["second", "third"]);
  expect([first.place, second.place, third.place].sort()).toEqual([-1, 0, 1]);
  set.delete(third);
  set.add(first);
  expect(namesIn(set)).toEqual(["first", "second"]);
  set.clear();
  expect(set.size).toBe(0);
  expect(first.place).toBe(-1);
});

test("PassingSet allows deletion of members during iteration", () => {
  const set = new PassingSet<Named>();
  const members = ["a", "b", "c", "d", "e"].map(named);
  for (const member of members) set.add(member);
  const visited: string[] = [];
  set.forEach((member) => {
    visited.push(member.name);
    if ("ace".includes(member.name)) set.delete(member);
  });
  expect(visited.sort()).toEqual(["a", "b", "c", "d", "e"]);
  expect(namesIn(set)).toEqual(["b", "d"]);
});

test("PassingMap contains the entries that were set and not deleted, oldest first", () => {
  const map = new PassingMap<{ amount: number }>();
  map.set("gen_b", { amount: 1 });
  map.set("gen_a", { amount: 2 });
  map.set("gen_b", { amount: 3 });
  expect(map.size).toBe(2);
  expect(map.entries()).toEqual([
    ["gen_b", { amount: 3 }],
    ["gen_a", { amount: 2 }],
  ]);
  expect(map.delete("gen_b")).toBe(true);
  expect(map.delete("gen_b")).toBe(false);
  expect(map.values()).toEqual([{ amount: 2 }]);
  expect(map.size).toBe(1);
});

test("PassingMap has no inherited entries", () => {
  const map = new PassingMap<object>();
  for (const name of ["constructor", "toString", "__proto__"]) {
    expect(map.has(name)).toBe(false);
    map.set(name, {});
    expect(map.has(name)).toBe(true);
    expect(map.delete(name)).toBe(true);
  }
  expect(map.size).toBe(0);
});
