import { afterAll, beforeAll, expect, test } from "bun:test";
import { encodeContractError } from "../../../src/http/error-envelope.ts";
import { checkMessagesRequest } from "../../../src/inference/dialects/anthropic-messages/request-schema.ts";
import { checkChatRequest } from "../../../src/inference/dialects/openai-chat/request-schema.ts";
import { checkResponsesRequest } from "../../../src/inference/dialects/openai-responses/request-schema.ts";
import { GatewayError } from "../../../src/platform/kernel/errors.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { isNightly } from "../../support/nightly.ts";
import { at } from "./at.ts";
import { isObject, ProbedSchema, type Json, type Probe } from "./schema-probes.ts";

const clock = new FakeClock();
let gateway: TestGateway;
let document: unknown;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true }, { clock });
  document = await (await gateway.get("/openapi.json")).json();
});
afterAll(() => gateway.stop());

const model = "sandbox/chat:free";
const messages = [{ role: "user", content: "Hello" }];

/** An operation whose requests are checked by the schema that is published. */
interface Operation {
  path: string;
  /** A valid body. */
  base: Json;
  check: (body: Json) => void;
  /** By day, a seventh of the bodies is tried: the check is that of another operation. */
  isShared?: true;
}

const operations: readonly Operation[] = [
  { path: "/chat/completions", base: { model, messages }, check: checkChatRequest },
  {
    path: "/routing/explain",
    base: { model, messages },
    check: checkChatRequest,
    isShared: true,
  },
  { path: "/messages", base: { model, max_tokens: 500, messages }, check: checkMessagesRequest },
  {
    path: "/messages/count_tokens",
    base: { model, messages },
    check: checkMessagesRequest,
    isShared: true,
  },
  { path: "/responses", base: { model, input: "Hello" }, check: checkResponsesRequest },
];

/** Of how many bodies one is sent by day where it need not be. */
const oneOf = 7;

/** What a request was answered. */
interface Outcome extends Probe {
  status: number;
  code: unknown;
  text: string;
}

const inTurn = 40;

/** Sends bodies some at a time; the clock goes on between, so that no window of requests is full. */
async function send(path: string, probes: readonly Probe[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let start = 0; start < probes.length; start += inTurn) {
    clock.advance(61_000);
    outcomes.push(
      ...(await Promise.all(
        probes.slice(start, start + inTurn).map(async (probe) => {
          const response = await gateway.post(path, probe.body, {
            headers: { authorization: `Bearer ${testLlmKey}` },
          });
          const text = await response.text();
          const code = response.status === 200 ? undefined : at(JSON.parse(text), "error.code");
          return { ...probe, status: response.status, code, text };
        }),
      )),
    );
  }
  return outcomes;
}

/** The field itself, or one of the same object where another type was taken for meant. */
const namesField = ({ path, text }: Outcome): boolean => {
  const param: unknown = at(JSON.parse(text), "error.param");
  if (typeof param !== "string" || !text.includes(param)) return false;
  return (
    param.startsWith(path) ||
    path.startsWith(param) ||
    // The fields of other surfaces mean nothing to a model that chats; messages are missing first.
    text.includes("messages is required: send at least one") ||
    param.startsWith(path.replace(/\.(?:type|role)$/, "")) ||
    // An item without a type and a readable id is a message that lacks its role.
    param === path.replace(/\.id$/, ".role")
  );
};

/** Refusals of what a request asks together, rather than of the type of a field. */
const refusesMeaning = ({ text }: Outcome): boolean =>
  [
    "The provider refused",
    "input is empty",
    "holds no conversations",
    // Messages may only be empty beside a thread that is continued.
    "messages is required: send at least one",
    "no call before it is unanswered",
  ].some((words) => text.includes(words));

const shown = ({ path, value, status, text }: Outcome): string =>
  `${path} = ${JSON.stringify(value)}: ${status} ${text.slice(0, 200)}`;

/** What the check of an operation says of a body; undefined where it lets it pass. */
function refusalOf(check: Operation["check"], probe: Probe): Outcome | undefined {
  try {
    check(probe.body);
    return undefined;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const text = JSON.stringify(encodeContractError(error, { traceId: "" }));
    return { ...probe, status: error.status, code: error.code, text };
  }
}

/**
 * Tries bodies. What the check of an operation refuses by itself is not sent by day, other than
 * each seventh: of the others it is known once they are answered.
 */
async function outcomesOf({ path, check, isShared }: Operation, probes: readonly Probe[]) {
  const refused: Outcome[] = [];
  const sent = probes.filter((probe, index) => {
    if (isNightly || isShared || index % oneOf === 0) return true;
    const refusal = refusalOf(check, probe);
    if (refusal !== undefined) refused.push(refusal);
    return refusal === undefined;
  });
  return [...refused, ...(await send(path, sent))];
}

test.each(operations.map((operation) => [operation.path, operation] as const))(
  "POST %s rejects what its published schema rejects, naming the field, and nothing else",
  async (path, operation) => {
    const { base } = operation;
    const least = isNightly || !operation.isShared ? 400 : 400 / oneOf;
    const schema = at(document, `paths.${path}.post.requestBody.content`);
    const published = isObject(schema) ? at(schema["application/json"], "schema") : undefined;
    const components = at(document, "components.schemas");
    const probed = new ProbedSchema(Object(published) as Json, Object(components) as Json);
    expect(probed.fits(base)).toBe(true);
    const isTried = (_: Probe, index: number): boolean =>
      isNightly || !operation.isShared || index % oneOf === 0;
    const outcomes = await outcomesOf(operation, probed.probesOf(base).filter(isTried));
    const breaking = outcomes.filter(({ fits }) => !fits);
    const fitting = outcomes.filter(({ fits }) => fits);
    console.log(
      `POST ${path}: ${breaking.length} bodies break the schema, ${fitting.length} fit it`,
    );
    expect(Math.min(breaking.length, fitting.length)).toBeGreaterThan(least);
    expect(breaking.filter(({ status }) => status !== 400).map(shown)).toEqual([]);
    expect(breaking.filter((outcome) => !namesField(outcome)).map(shown)).toEqual([]);
    const refused = fitting.filter(({ code }) => code === "bad_request");
    expect(refused.filter((outcome) => !refusesMeaning(outcome)).map(shown)).toEqual([]);
  },
  240_000,
);
