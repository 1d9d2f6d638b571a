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

describe("what may be asked", () => {
  test.each<[string, Question]>([
    ["noul", noul],
    ["noul with meanings", { ...noul, criteria: { true: "after ten" } }],
    ["choice", choice],
    ["score", score],
    [
      "guidance in JSON",
      {
        type: "choice",
        instructions: { ask: "who" },
        criteria: { cat: ["small"], dog: { size: "large" } },
      },
    ],
    [
      "score of ten levels",
      { ...score, criteria: Array.from({ length: 10 }, (_, level) => `level ${level}`) },
    ],
  ])("%s", (_, question) =>
    expect(readDecisionRequest(body(question)).questions).toEqual({ q: question }),
  );

  test.each([["text"], [{ a: 1 }], [[1, 2]], [""]])("a state of %j", (state) => {
    expect(readDecisionRequest({ ...body(noul), state }).state).toEqual(state as never);
  });
});

describe("what is refused, and where", () => {
  test.each<[string, unknown, string]>([
    ["no model", { ...body(noul), model: "" }, "model"],
    ["no state", { ...body(noul), state: undefined }, "state"],
    ["a state that is a number", { ...body(noul), state: 5 }, "state"],
    ["no questions", { ...body(noul), questions: undefined }, "questions"],
    ["an array of questions", { ...body(noul), questions: [noul] }, "questions"],
    ["an empty map", { ...body(noul), questions: {} }, "questions"],
    [
      "more questions than anybody has",
      { ...body(noul), questions: { ...Array.from({ length: 257 }, () => noul) } },
      "questions",
    ],
    ["a question that is a text", body("late?"), "questions.q"],
    ["another type", body({ ...noul, type: "guess" }), "questions.q.type"],
    ["no instructions", body({ type: "noul" }), "questions.q.instructions"],
    ["a third meaning", body({ ...noul, criteria: { maybe: "x" } }), "questions.q.criteria.maybe"],
    [
      "a meaning that is no text",
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
    ["a level that is no text", body({ ...score, criteria: ["a", 2] }), "questions.q.criteria[1]"],
  ])("%s", (_, value, param) => {
    expect(() => readDecisionRequest(value as Record<string, unknown>)).toThrow(
      expect.objectContaining({ code: "bad_request", param }),
    );
  });
});

describe("a provider's own answers", () => {
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
  ])("are passed on %#", (question, answer) =>
    expect(readAnswer(question, { ...answer, more: 1 })).toEqual(answer as never),
  );

  test("levels in a list, without a legend and without confidence, are told as others", () => {
    expect(
      readAnswer(score, { type: "score", score: 1.2, probabilities: [0.1, 0.6, 0.3] }),
    ).toEqual(scored as never);
  });

  test.each<[string, Question, unknown]>([
    ["none", noul, undefined],
    ["of another type", noul, chosen],
    ["beyond 1", noul, { type: "noul", noul: 1.5 }],
    ["an option that nobody offered", choice, { ...chosen, choice: "toString" }],
    ["without probabilities", choice, { ...chosen, probabilities: undefined }],
    ["of a confidence beyond 1", choice, { ...chosen, confidence: 2 }],
    ["of too few levels", score, { ...scored, probabilities: [0.5, 0.5] }],
    ["of a score that is no number", score, { ...scored, score: "1" }],
  ])("are no answers: %s", (_, question, answer) =>
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

  test("a question says its options and asks for one token, with its candidates", () => {
    const asked = chatQuestionOf({ hour: 23 }, choice);
    expect(asked).toMatchObject({ outputTokensMax: 1, candidates: 20 });
    for (const line of ['"hour":23', "Who?", "A) cat: a small beast", "B) dog"])
      expect(asked.user).toContain(line);
    expect(chatQuestionOf("x", noul).user).toContain("- Yes\n- No");
  });

  test("spellings of an option count together, and what is none of them not at all", () => {
    const shares = sharesOf(noul, tokens({ Yes: 0.4, " yes": 0.2, NO: 0.2, Maybe: 0.2 }));
    expect(shares?.map((share) => Math.round(share * 1e6) / 1e6)).toEqual([0.75, 0.25]);
  });

  test("the token itself counts where its candidates leave it out", () => {
    expect(sharesOf(noul, { token: "No", logprob: 0, top: [] })).toEqual([0, 1]);
  });

  test("without any option among the candidates there is no answer", () => {
    expect(sharesOf(choice, tokens({ "<think>": 0.9, The: 0.1 }))).toBeUndefined();
  });

  test("the answers of the three types", () => {
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
