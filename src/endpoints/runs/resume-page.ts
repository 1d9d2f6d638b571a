import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { closureOf, type Run } from "../../identity/keys/run.ts";
import { coversScope } from "../../identity/keys/scopes.ts";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { nanoFromUsd, usdFromNano, usdText } from "../../platform/kernel/money.ts";
import { facts, messagePage } from "../../pages/message-page.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  formType,
  pageResponse,
  pageRoute,
  personOf,
  placeOf,
  problemOf,
  readForm,
  redirect,
  signInPath,
} from "../pages/page-response.ts";
import { runObject } from "./run-object.ts";

/** Returns the amount that the page offers: as much as the run began with. */
const offeredUsd = ({ limitNano }: Run): string => usdText(limitNano);

const notHere = messagePage({
  title: "This run is not here",
  sentences: [
    "There is no such run in the workspace that you are signed in to. Switch to the workspace of the run, and open the link again.",
  ],
  links: [{ href: "/", label: "Go to the dashboard" }],
});

const stateTexts: Record<string, string> = {
  active: "It serves requests.",
  paused: "It is paused.",
  exhausted: "It has used what it may spend, and refuses requests.",
};

/** What the page says above its form. */
interface Said {
  problem?: string;
  done?: string;
}

/** Returns the page of a run: what is left, and the forms that add to it, let it go on or end it. */
async function pageOf(
  deps: Pick<Dependencies, "ledger" | "runs" | "directory" | "clock">,
  run: Run,
  said: Said,
) {
  const { status, spent, limit, requests, max_requests: most } = await runObject(deps, run);
  const rows = facts([
    ["Spent", `${spent} of ${limit} USD`],
    ["Requests", most === null ? String(requests) : `${requests} of ${most}`],
    ["Ends", new Date(run.expiresAtMs).toUTCString()],
  ]);
  const closure = closureOf(run, deps.clock.nowMs());
  if (closure === "ended" || closure === "expired")
    return messagePage({
      title: `The run ${run.name} has ${closure}`,
      sentences: ["Its rest went back to the key that it was opened with. Open another run."],
      more: rows,
      ...said,
    });
  const isPaused = closure === "paused";
  return messagePage({
    title: `Run ${run.name}`,
    sentences: [
      stateTexts[status] ?? "",
      "What you add is taken from the key or the run that it was opened with. The agent then sends its last request again.",
    ],
    ...said,
    more: rows,
    form: {
      action: `/resume/${run.id}`,
      fields: [
        {
          name: "add",
          label: "Add, in USD",
          type: "number",
          autocomplete: "off",
          value: isPaused ? "0" : offeredUsd(run),
          min: "0",
          step: "any",
        },
      ],
      button: "Add and go on",
      choice: { name: "decision", value: "add" },
      other: { label: "End the run", name: "decision", value: "end" },
    },
  });
}

/** Returns the run of the page, where the person's workspace has it. */
async function runFor(
  { param }: { param: string },
  { deps, person }: { deps: Pick<Dependencies, "runs">; person: SessionCaller },
): Promise<Run | undefined> {
  return deps.runs.editor
    .find({ workspaceId: person.workspace.id, id: param })
    .catch((error: unknown) => {
      if (error instanceof GatewayError) return undefined;
      throw error;
    });
}

export const resumePage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/resume/:id",
  summary: "Show the page where a person adds to a run.",
  async handle(
    context,
    deps: Pick<Dependencies, "ledger" | "runs" | "directory" | "people" | "clock">,
  ) {
    const person = await personOf(context, deps);
    if (person === undefined) return redirect(context, signInPath(placeOf(context)));
    const run = await runFor({ param: context.param("id") }, { deps, person });
    if (run === undefined) return pageResponse(context, notHere, { status: 404 });
    return pageResponse(context, await pageOf(deps, run, {}));
  },
});

/** Adds to a run, or ends it. Throws where the amount is not one, or the owner has less. */
async function decide(
  { editor }: Dependencies["runs"],
  { run, form }: { run: Run; form: URLSearchParams },
): Promise<{ run: Run; done: string }> {
  if (form.get("decision") === "end")
    return { run: await editor.end(run), done: "The run has ended." };
  const addNano = nanoFromUsd(form.get("add") ?? "");
  if (addNano === undefined || addNano < 0n)
    throw new GatewayError("bad_request", "Type an amount in USD, such as 0.50.");
  let changed = run;
  if (addNano > 0n) changed = await editor.setLimit(changed, run.limitNano + addNano);
  if (changed.paused) changed = await editor.setPaused(changed, false);
  return {
    run: changed,
    done: `Added ${usdFromNano(addNano)} USD. The agent can send its request again.`,
  };
}

export const submitResume = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/resume/:id",
  summary: "Add to a run (form of the page).",
  rawBody: z.object({ add: z.string().optional(), decision: z.enum(["add", "end"]).optional() }),
  rawBodyType: formType,
  async handle(
    context: RequestContext,
    deps: Pick<Dependencies, "ledger" | "runs" | "directory" | "people" | "clock" | "publicUrl">,
  ) {
    const form = await readForm(context, deps);
    const person = await personOf(context, deps);
    if (person === undefined)
      return redirect(context, signInPath(`/resume/${context.param("id")}`));
    const run = await runFor({ param: context.param("id") }, { deps, person });
    if (run === undefined) return pageResponse(context, notHere, { status: 404 });
    if (!coversScope(person.scopes, "write:llm-keys"))
      return pageResponse(
        context,
        await pageOf(deps, run, { problem: `As ${person.role} you may not change runs.` }),
        { status: 403 },
      );
    try {
      const { run: changed, done } = await decide(deps.runs, { run, form });
      return pageResponse(context, await pageOf(deps, changed, { done }));
    } catch (thrown) {
      const { problem, status } = problemOf(thrown);
      return pageResponse(context, await pageOf(deps, run, { problem }), { status });
    }
  },
});
