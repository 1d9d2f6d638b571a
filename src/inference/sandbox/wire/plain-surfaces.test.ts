import { expect, test } from "bun:test";
import { decisions } from "./plain-surfaces.ts";

const answersOf = (questions: object): unknown =>
  (
    decisions.read({ model: "m", state: "the parcel never came", questions }).answer("seed") as {
      answers: unknown;
    }
  ).answers;

test("an option is the likelier the more words it has in common with the state", () => {
  expect(
    answersOf({
      late: {
        type: "noul",
        instructions: "late?",
        criteria: { true: "parcel never came", false: "all is well" },
      },
      team: {
        type: "choice",
        instructions: "who?",
        criteria: { billing: "money", shipping: "a parcel that never came" },
      },
      bad: { type: "score", instructions: "how bad?", criteria: ["fine", "never came"] },
    }),
  ).toMatchObject({
    late: { type: "noul", noul: expect.closeTo(0.9, 1) },
    team: { choice: "shipping" },
    bad: {
      score: expect.closeTo(0.88, 1),
      legend: { 0: "fine", 1: "never came" },
      probabilities: { 1: expect.closeTo(0.88, 1) },
    },
  });
});

test("what nobody can tell is even, and the same request has the same answer", () => {
  const even = { bad: { type: "score", instructions: "?", criteria: ["x", "y"] } };
  expect(answersOf(even)).toMatchObject({ bad: { score: 0.5, confidence: 0.5 } });
  expect(answersOf(even)).toEqual(answersOf(even));
});

test("what is no question is refused", () => {
  expect(() => answersOf({ bad: { type: "guess", instructions: "?" } })).toThrow();
});
