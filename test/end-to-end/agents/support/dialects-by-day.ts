import type { ScriptedDialect } from "../../../support/scripted-upstream/scripted-upstream.ts";
import { isNightly } from "../../../support/nightly.ts";
import { upstreamDialects } from "../../clients/support/client-stage.ts";

/**
 * The dialects of providers that an agent meets: nightly all, by day those named, since a run is a
 * process of seconds, and `matrix/vendors/client-requests.test.ts` sends what agents do to all.
 */
export const dialectsByDay = (...byDay: ScriptedDialect[]): readonly ScriptedDialect[] =>
  isNightly ? upstreamDialects : byDay;
