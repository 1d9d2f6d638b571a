import { expect, test } from "bun:test";
import { decisions } from "./plain-surfaces.ts";

const answersOf = (questions: object): unknown =>
  (
    decisions.read({ model: "m", state: "the parcel never came", questions }).answer("seed") as {
      answers: unknown;
    }
  ).answers;

test("an option is more likely the more words it shares with the state", () => {
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

test("options without evidence are equally likely, and the response is deterministic", () => {
  const even = { bad: { type: "score", instructions: "?", criteria: ["x", "y"] } };
  expect(answersOf(even)).toMatchObject({ bad: { score: 0.5, confidence: 0.5 } });
  expect(answersOf(even)).toEqual(answersOf(even));
});

test("an unknown question type is refused", () => {
  expect(() => answersOf({ bad: { type: "guess", instructions: "?" } })).toThrow();
});
