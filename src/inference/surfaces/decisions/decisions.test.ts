import { describe, expect, test } from "bun:test";
import { chatQuestionOf, sharesOf, answerOf, readAnswer } from "./decisions-call.ts";
import { readDecisionRequest, type Question } from "./decision-request.ts";

const noul: Question = { type: "noul", instructions: "Is it late?" };
const choice: Question = {
  type: "choice",
  instructions: "Who?",
  criteria: { cat: "a small beast", dog: null },
};
const score: Question = {
  type: "score",
  instructions: "How bad?",
  criteria: ["fine", "bad", "worse"],
};

const body = (question: unknown) => ({ model: "m/d", state: "s", questions: { q: question } });

describe("readDecisionRequest accepts", () => {
  test.each<[string, Question]>([
    ["noul", noul],
    ["noul with criteria", { ...noul, criteria: { true: "after ten" } }],
    ["choice", choice],
    ["score", score],
    [
      "instructions and criteria in JSON",
      {
        type: "choice",
        instructions: { ask: "who" },
        criteria: { cat: ["small"], dog: { size: "large" } },
      },
    ],
    [
      "score with ten levels",
      { ...score, criteria: Array.from({ length: 10 }, (_, level) => `level ${level}`) },
    ],
  ])("%s", (_, question) =>
    expect(readDecisionRequest(body(question)).questions).toEqual({ q: question }),
  );

  test.each([["text"], [{ a: 1 }], [[1, 2]], [""]])("a state of %j", (state) => {
    expect(readDecisionRequest({ ...body(noul), state }).state).toEqual(state as never);
  });
});

describe("readDecisionRequest refuses and names the field for", () => {
  test.each<[string, unknown, string]>([
    ["no model", { ...body(noul), model: "" }, "model"],
    ["no state", { ...body(noul), state: undefined }, "state"],
    ["a state that is a number", { ...body(noul), state: 5 }, "state"],
    ["no questions", { ...body(noul), questions: undefined }, "questions"],
    ["an array of questions", { ...body(noul), questions: [noul] }, "questions"],
    ["an empty map", { ...body(noul), questions: {} }, "questions"],
    [
      "more than 256 questions",
      { ...body(noul), questions: { ...Array.from({ length: 257 }, () => noul) } },
      "questions",
    ],
    ["a question that is a string", body("late?"), "questions.q"],
    ["an unknown type", body({ ...noul, type: "guess" }), "questions.q.type"],
    ["no instructions", body({ type: "noul" }), "questions.q.instructions"],
    ["a third verdict", body({ ...noul, criteria: { maybe: "x" } }), "questions.q.criteria.maybe"],
    [
      "a criterion that is not a string",
      body({ ...noul, criteria: { true: 1 } }),
      "questions.q.criteria.true",
    ],
    ["no options", body({ ...choice, criteria: {} }), "questions.q.criteria"],
    [
      "options without descriptions or null",
      body({ ...choice, criteria: { a: 1 } }),
      "questions.q.criteria.a",
    ],
    ["options as an array", body({ ...choice, criteria: ["a"] }), "questions.q.criteria"],
    [
      "choice without criteria",
      body({ type: "choice", instructions: "x" }),
      "questions.q.criteria",
    ],
    ["score without criteria", body({ type: "score", instructions: "x" }), "questions.q.criteria"],
    ["one level", body({ ...score, criteria: ["a"] }), "questions.q.criteria"],
    [
      "eleven levels",
      body({ ...score, criteria: Array.from({ length: 11 }, () => "a") }),
      "questions.q.criteria",
    ],
    ["a level as a number", body({ ...score, criteria: ["a", 2] }), "questions.q.criteria[1]"],
  ])("%s", (_, value, param) => {
    expect(() => readDecisionRequest(value as Record<string, unknown>)).toThrow(
      expect.objectContaining({ code: "bad_request", param }),
    );
  });
});

describe("readAnswer", () => {
  const chosen = {
    type: "choice",
    choice: "cat",
    probabilities: { cat: 0.8, dog: 0.2 },
    confidence: 0.8,
  };
  const legend = { 0: "fine", 1: "bad", 2: "worse" };
  const scored = {
    type: "score",
    score: 1.2,
    legend,
    probabilities: { 0: 0.1, 1: 0.6, 2: 0.3 },
    confidence: 0.6,
  };
  test.each<[Question, object]>([
    [noul, { type: "noul", noul: 0.25 }],
    [choice, chosen],
    [score, scored],
  ])("returns a valid answer unchanged %#", (question, answer) =>
    expect(readAnswer(question, { ...answer, more: 1 })).toEqual(answer as never),
  );

  test("normalizes a score without a legend and a confidence", () => {
    expect(
      readAnswer(score, { type: "score", score: 1.2, probabilities: [0.1, 0.6, 0.3] }),
    ).toEqual(scored as never);
  });

  test.each<[string, Question, unknown]>([
    ["no value", noul, undefined],
    ["another type", noul, chosen],
    ["a noul above 1", noul, { type: "noul", noul: 1.5 }],
    ["an unknown option", choice, { ...chosen, choice: "toString" }],
    ["no probabilities", choice, { ...chosen, probabilities: undefined }],
    ["a confidence above 1", choice, { ...chosen, confidence: 2 }],
    ["too few levels", score, { ...scored, probabilities: [0.5, 0.5] }],
    ["a score that is not a number", score, { ...scored, score: "1" }],
  ])("refuses an answer with %s", (_, question, answer) =>
    expect(readAnswer(question, answer)).toBeUndefined(),
  );
});

describe("answers from log probabilities", () => {
  const tokens = (shares: Record<string, number>) => {
    const top = Object.entries(shares).map(([token, share]) => ({
      token,
      logprob: Math.log(share),
    }));
    return { ...(top[0] as { token: string; logprob: number }), top };
  };

  test("come from a prompt that lists the options and requests one token with candidates", () => {
    const asked = chatQuestionOf({ hour: 23 }, choice);
    expect(asked).toMatchObject({ outputTokensMax: 1, candidates: 20 });
    for (const line of ['"hour":23', "Who?", "A) cat: a small beast", "B) dog"])
      expect(asked.user).toContain(line);
    expect(chatQuestionOf("x", noul).user).toContain("- Yes\n- No");
  });

  test("add up the spellings of an option, and ignore other tokens", () => {
    const shares = sharesOf(noul, tokens({ Yes: 0.4, " yes": 0.2, NO: 0.2, Maybe: 0.2 }));
    expect(shares?.map((share) => Math.round(share * 1e6) / 1e6)).toEqual([0.75, 0.25]);
  });

  test("count the chosen token if it is not among the candidates", () => {
    expect(sharesOf(noul, { token: "No", logprob: 0, top: [] })).toEqual([0, 1]);
  });

  test("are undefined if no option is among the candidates", () => {
    expect(sharesOf(choice, tokens({ "<think>": 0.9, The: 0.1 }))).toBeUndefined();
  });

  test("have the form of each of the three types", () => {
    expect(answerOf(noul, [0.75, 0.25])).toEqual({ type: "noul", noul: 0.75 });
    expect(answerOf(choice, [0.25, 0.75])).toEqual({
      type: "choice",
      choice: "dog",
      probabilities: { cat: 0.25, dog: 0.75 },
      confidence: 0.75,
    });
    expect(answerOf(score, [0.25, 0.25, 0.5])).toEqual({
      type: "score",
      score: 1.25,
      legend: { 0: "fine", 1: "bad", 2: "worse" },
      probabilities: { 0: 0.25, 1: 0.25, 2: 0.5 },
      confidence: 0.5,
    });
  });
});
