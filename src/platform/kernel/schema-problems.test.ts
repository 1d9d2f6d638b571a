import { expect, test } from "bun:test";
import { z } from "zod";
import { problemText } from "./schema-problems.ts";

test.each([
  [z.number(), "1", "must be a number"],
  [z.string(), undefined, "is required and must be a string"],
  [z.int(), 1.5, "must be an integer"],
  [z.boolean(), 1, "must be true or false"],
  [z.array(z.string()), {}, "must be an array"],
  [z.record(z.string(), z.string()), [], "must be an object"],
  [z.number().min(0), -1, "must be at least 0"],
  [z.number().positive(), 0, "must be greater than 0"],
  [z.number().max(2), 3, "must be at most 2"],
  [z.number().lt(2), 2, "must be less than 2"],
  [z.string().min(1), "", "must not be empty"],
  [z.string().min(12), "short", "must have at least 12 characters"],
  [z.string().max(2), "long", "must have at most 2 characters"],
  [z.array(z.string()).max(1), ["a", "b"], "must have at most 1 entry"],
  [z.union([z.string(), z.array(z.string())]), 1, "must be a string or an array"],
  [z.enum(["daily", "weekly"]), "yearly", "must be one of daily, weekly"],
  [z.literal(true), false, "must be true"],
  [z.iso.datetime(), "soon", "must be a moment such as 2026-11-22T12:00:00Z"],
  [z.number().multipleOf(5), 3, "must be a multiple of 5"],
  [z.string("says so itself"), 1, "says so itself"],
])("problemText describes problem %# in plain words", (schema, value, words) => {
  const { error } = schema.safeParse(value, { error: problemText });
  expect(error?.issues.map(({ message }) => message)).toEqual([words]);
});
