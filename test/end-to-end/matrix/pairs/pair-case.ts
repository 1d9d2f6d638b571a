import type { ScriptedDialect as DialectId } from "../../../support/scripted-upstream/scripted-upstream.ts";
import type { ClientName } from "../support/client-dialect.ts";
import type { Fields } from "../support/json-value.ts";

/** How a pair is named in exceptions. */
export type PairName = `${ClientName} -> ${DialectId}`;

/**
 * What is asked, on the wires of both sides. A client's own dialect keeps its words, so that pair
 * needs no row.
 */
export interface AskedCase {
  what: string;
  /** What each client sends beside the model and its bound of 300 tokens. */
  asks: Readonly<Record<ClientName, Fields>>;
  /** What each upstream must get, beside what every request has. */
  gets: Readonly<Partial<Record<DialectId, Fields>>>;
  /** Where the client's dialect said less, or the upstream gets something else because of it. */
  except?: Partial<Record<PairName, Fields>>;
  /**
   * Fields that the answer names as lost on their way to this upstream, or for this pair; absent
   * means none.
   */
  losses?: Partial<Record<DialectId | PairName, readonly string[]>>;
  /** The field that is named where the request is refused instead of being asked wrongly. */
  refuses?: Partial<Record<DialectId | PairName, string>>;
}

/**
 * The fields with which Messages gets a conversation that contains calls and offers no tools: it
 * refuses one that declares none.
 */
export const onlyCalled = (...names: string[]): Fields => ({
  tools: names.map((name) => ({ name, input_schema: { type: "object", properties: {} } })),
  tool_choice: { type: "none" },
});

/** What is answered, on the wires of both sides. */
export interface AnsweredCase {
  what: string;
  /** The whole body of each upstream; its stream says the same. */
  answers: Readonly<Record<DialectId, Fields>>;
  /** Members of the body that each client must see, whole and added up from its stream. */
  sees: Readonly<Record<ClientName, Fields>>;
  /** Where the upstream's dialect said less. */
  except?: Partial<Record<PairName, Fields>>;
}
