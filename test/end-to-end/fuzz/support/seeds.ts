import type { ScriptedDialect as DialectId } from "../../../support/scripted-upstream/scripted-upstream.ts";
import { eventsOf, tales } from "../../matrix/support/beats.ts";
import type { AnyClientName } from "../../matrix/support/client-dialect.ts";
import type { Fields } from "../../matrix/support/json-value.ts";
import { clientOf } from "../../matrix/support/pairs.ts";
import { answerCases } from "../../matrix/pairs/answers.ts";
import { documentCases } from "../../matrix/pairs/documents.ts";
import { mediaCases } from "../../matrix/pairs/media.ts";
import { eventsOfWhole } from "../../matrix/pairs/streamed-answer.ts";
import { textCases } from "../../matrix/pairs/text.ts";
import { thinkingAndOutputCases } from "../../matrix/pairs/thinking-and-output.ts";
import { toolResultCases } from "../../matrix/pairs/tool-results.ts";
import { toolCases } from "../../matrix/pairs/tools.ts";

const cases = [
  ...textCases,
  ...mediaCases,
  ...documentCases,
  ...toolCases,
  ...toolResultCases,
  ...thinkingAndOutputCases,
];

/** Good requests of a client's dialect, from which others are made. */
export const goodRequests = (client: AnyClientName): Fields[] =>
  cases.map(({ asks, gets }) => ({
    model: "acme/large",
    ...clientOf(client).ask("Hi"),
    // What Google's models get is what its clients ask.
    ...(client === "google-generate" ? gets[client] : asks[client]),
  }));

/** Good whole answers of an upstream's dialect. */
export const goodAnswers = (upstream: DialectId): Fields[] =>
  answerCases.map(({ answers }) => answers[upstream]);

/** Good streams of an upstream's dialect, as the texts of their events. */
export const goodStreams = (upstream: DialectId): string[][] =>
  [
    eventsOf(tales[upstream]),
    ...goodAnswers(upstream).map((whole) => eventsOfWhole(upstream, whole)),
  ].map((events) => events.map(({ bytes }) => Buffer.from(bytes).toString("utf8")));
