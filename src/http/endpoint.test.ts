import { expect, test } from "bun:test";
import { endpoints } from "../endpoints/index.ts";
import { deprecationHeaders, lazily } from "./endpoint.ts";

test("deprecationHeaders returns Deprecation, Sunset and Link", () => {
  expect(
    deprecationHeaders({
      since: "2026-11-22",
      until: "2027-11-22",
      link: "https://gateway.example.com/docs#keys",
    }),
  ).toEqual({
    deprecation: "@1795305600",
    sunset: "Mon, 22 Nov 2027 00:00:00 GMT",
    link: '<https://gateway.example.com/docs#keys>; rel="deprecation"',
  });
  expect(deprecationHeaders({ since: "2026-11-22" })).toEqual({ deprecation: "@1795305600" });
});

test("deprecationHeaders throws if the sunset is less than a year after the deprecation", () => {
  expect(() => deprecationHeaders({ since: "2026-11-22", until: "2027-11-21" })).toThrow(
    "a year later",
  );
});

test("every deprecation in the endpoint table is valid", () => {
  const declared = endpoints.flatMap(({ deprecated }) => deprecated ?? []);
  expect(declared.map((each) => typeof deprecationHeaders(each)["deprecation"])).toEqual(
    declared.map(() => "string"),
  );
});

test("lazily calls its function once, at the first call", () => {
  let times = 0;
  const count = lazily(() => {
    times += 1;
    return undefined;
  });
  expect(times).toBe(0);
  expect(count()).toBeUndefined();
  expect(count()).toBeUndefined();
  expect(times).toBe(1);
});
