import { badRequest } from "../../dialects/shared/wire-fields.ts";
import { listOf, type Fields } from "../read-fields.ts";
import { FieldReader } from "../field-reader.ts";
import { isObject } from "../../../platform/kernel/json/json-members.ts";

/** A description of a question or of an answer to it: text, or JSON. */
export type Guidance = string | Fields | readonly unknown[];

/** A question to be answered yes or no, with descriptions of both. */
interface NoulQuestion {
  type: "noul";
  instructions: Guidance;
  criteria?: { true?: Guidance | null; false?: Guidance | null };
}

/** A question whose answer is one of its options, which may have descriptions. */
export interface ChoiceQuestion {
  type: "choice";
  instructions: Guidance;
  criteria: Readonly<Record<string, Guidance | null>>;
}

/** A question whose answer is one of its levels, in ascending order. */
export interface ScoreQuestion {
  type: "score";
  instructions: Guidance;
  criteria: readonly Guidance[];
}

/** A question of one of the contract's three types. */
export type Question = NoulQuestion | ChoiceQuestion | ScoreQuestion;

/** A request for decisions (contract: `POST /decisions`). */
export interface DecisionRequest {
  /** The model as the caller wrote it. */
  model: string;
  state: Guidance;
  /** The questions by their ids, at least one. */
  questions: Readonly<Record<string, Question>>;
}

/** The most questions of one request: each may be a request of its own at the provider. */
const questionsMax = 256;
/** The numbers of levels of a score (contract: `POST /decisions`). */
const levels = { least: 2, most: 10 };

/** Reads a body. Throws `bad_request` that names the field. */
export function readDecisionRequest(body: Fields): DecisionRequest {
  const { model, state, questions } = body;
  if (typeof model !== "string" || model === "")
    throw badRequest("model", "is required: the id of a decision model.");
  if (state === undefined || state === null)
    throw badRequest("state", "is required: a string, an object or an array.");
  if (typeof state !== "string" && typeof state !== "object")
    throw badRequest("state", "must be a string, an object or an array.");
  new FieldReader(body, "bad_request").checkSession();
  return { model, state: state as DecisionRequest["state"], questions: questionsOf(questions) };
}

function questionsOf(value: unknown): Record<string, Question> {
  if (Array.isArray(value))
    throw badRequest(
      "questions",
      "must be an object that maps the id of each question to it, not an array.",
    );
  if (!isObject(value))
    throw badRequest(
      "questions",
      "is required: an object that maps the id of each question to it.",
    );
  const entries = Object.entries(value);
  if (entries.length === 0) throw badRequest("questions", "must have at least one question.");
  if (entries.length > questionsMax)
    throw badRequest("questions", `may have at most ${questionsMax} questions.`);
  return Object.fromEntries(
    entries.map(([id, question]) => [id, questionOf(question, `questions.${id}`)]),
  );
}

function questionOf(value: unknown, at: string): Question {
  if (!isObject(value))
    throw badRequest(at, "must be an object with type, instructions and criteria.");
  const { type, criteria } = value;
  if (type !== "noul" && type !== "choice" && type !== "score")
    throw badRequest(`${at}.type`, "must be noul, choice or score.");
  const { instructions } = value;
  if (!isGuidance(instructions))
    throw badRequest(`${at}.instructions`, "is required: a text that says what is asked.");
  switch (type) {
    case "noul":
      return { type, instructions, ...meaningsOf(criteria, `${at}.criteria`) };
    case "choice":
      return { type, instructions, criteria: requestOptions(criteria, `${at}.criteria`) };
    case "score":
      return { type, instructions, criteria: levelsOf(criteria, `${at}.criteria`) };
  }
}

const isGuidance = (value: unknown): value is Guidance =>
  (typeof value === "string" && value !== "") || (typeof value === "object" && value !== null);

const isDescription = (value: unknown): value is Guidance | null =>
  value === null || value === "" || isGuidance(value);

function meaningsOf(criteria: unknown, at: string): Pick<NoulQuestion, "criteria"> {
  if (criteria === undefined || criteria === null) return {};
  if (!isObject(criteria))
    throw badRequest(at, "must be an object with descriptions for true and false.");
  for (const [name, description] of Object.entries(criteria)) {
    if (name !== "true" && name !== "false")
      throw badRequest(`${at}.${name}`, "is neither true nor false.");
    if (!isDescription(description)) throw badRequest(`${at}.${name}`, "must be a description.");
  }
  return { criteria };
}

function requestOptions(criteria: unknown, at: string): ChoiceQuestion["criteria"] {
  if (!isObject(criteria))
    throw badRequest(
      at,
      "is required: an object that maps each option to its description or null.",
    );
  const entries = Object.entries(criteria);
  if (entries.length === 0) throw badRequest(at, "must have at least one option.");
  return Object.fromEntries(
    entries.map(([option, description]) => {
      if (!isDescription(description))
        throw badRequest(`${at}.${option}`, "must be a description or null.");
      return [option, description];
    }),
  );
}

function levelsOf(criteria: unknown, at: string): readonly Guidance[] {
  const list = listOf(criteria);
  if (list === undefined)
    throw badRequest(
      at,
      "is required: an array with the descriptions of the levels, the lowest first.",
    );
  if (list.length < levels.least || list.length > levels.most)
    throw badRequest(at, `must have ${levels.least} to ${levels.most} levels.`);
  return list.map((level, index) => {
    if (!isGuidance(level)) throw badRequest(`${at}[${index}]`, "must be a description.");
    return level;
  });
}
