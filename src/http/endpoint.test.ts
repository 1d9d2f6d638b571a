import { expect, test } from "bun:test";
import { endpoints } from "../endpoints/index.ts";
import { deprecationHeaders, lazily } from "./endpoint.ts";

test("the headers say since when, until when and where the way out is", () => {
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

test("an end in less than a year is a mistake", () => {
  expect(() => deprecationHeaders({ since: "2026-11-22", until: "2027-11-21" })).toThrow(
    "a year later",
  );
});

test("every declaration in the table keeps to it", () => {
  const declared = endpoints.flatMap(({ deprecated }) => deprecated ?? []);
  expect(declared.map((each) => typeof deprecationHeaders(each)["deprecation"])).toEqual(
    declared.map(() => "string"),
  );
});

test("what is made lazily is made by the first call, once", () => {
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
