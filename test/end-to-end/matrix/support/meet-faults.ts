import type { ScriptedDialect as DialectId } from "../../../support/scripted-upstream/scripted-upstream.ts";
import { wireOf } from "../../../support/scripted-upstream/scripted-upstream.ts";
import { forgetFailuresOf } from "../../../support/gateway.ts";
import type { Fault } from "../../../support/upstream/fault.ts";
import { faultsOf, type FaultName } from "../../../support/upstream/faults.ts";
import { kindsOf } from "../../scenarios/support/fault-scenes.ts";
import { settledRows, type SettledRow } from "../../scenarios/support/settled-rows.ts";
import { providerUnder, type MatrixScene } from "./matrix-scene.ts";
import type { Pair } from "./pairs.ts";
import type { Reply } from "./reply.ts";

/** A fault of an upstream, met by one kind of request. */
export interface Encounter {
  name: FaultName;
  kind: "stream" | "whole";
  fault: Fault;
}

/** Every fault of a dialect, by every kind of request that it is made for. */
export const encountersWith = (upstream: DialectId): Encounter[] => {
  const faults = faultsOf(wireOf(upstream));
  return (Object.keys(faults) as FaultName[]).flatMap((name) =>
    kindsOf(faults[name]).map((kind) => ({ name, kind, fault: faults[name] })),
  );
};

/** How a test names an encounter. */
export const titleOf = ({ name, kind }: Pick<Encounter, "name" | "kind">): string =>
  `${kind}: ${name}`;

/** What came of an encounter: the client's answer, and the settlement where there was one. */
export interface Outcome {
  reply: Reply;
  row: SettledRow | undefined;
}

const asked = (text: string): string => /<<([^<>]*)>>/.exec(text)?.[1] ?? "";

/**
 * Lets a client of one dialect meet every fault of an upstream of another, each with a request that
 * names it. Those that wait for a timeout meet it together, after the others, so that the machine
 * is theirs.
 */
export async function meetFaults(
  scene: MatrixScene,
  { client, upstream }: Pair,
  {
    backups = [],
    chosen = () => true,
  }: { backups?: readonly string[]; chosen?: (encounter: Encounter) => boolean } = {},
): Promise<Map<string, Outcome>> {
  const encounters = encountersWith(upstream).filter(chosen);
  const byTitle = new Map(encounters.map((encounter) => [titleOf(encounter), encounter]));
  scene.upstreams[upstream].script(
    (request) => byTitle.get(asked(request.body))?.fault.script ?? [],
  );
  for (const { fault } of encounters)
    forgetFailuresOf(scene.gateway, providerUnder(upstream, fault));
  const meet = async (encounter: Encounter): Promise<[string, Reply]> => {
    const title = titleOf(encounter);
    const body = { ...client.ask(`<<${title}>>`), stream: encounter.kind === "stream" };
    return [
      title,
      await scene.ask(client, body, {
        providers: [providerUnder(upstream, encounter.fault), ...backups],
      }),
    ];
  };
  const replies = [
    ...(await Promise.all(encounters.filter(({ fault }) => !fault.waits).map(meet))),
    ...(await Promise.all(encounters.filter(({ fault }) => fault.waits).map(meet))),
  ];
  const rows = new Map((await settledRows(scene.gateway)).map((row) => [row.id, row]));
  return new Map(
    replies.map(([title, reply]) => [
      title,
      { reply, row: rows.get(`gen_${reply.headers.get("x-service-trace-id")}`) },
    ]),
  );
}
