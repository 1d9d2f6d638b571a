import { z } from "zod";
import type { Attempt } from "../../identity/people/sign-in/sign-in-throttle.ts";
import { plainUserCode, shownUserCode, type PendingDevice } from "../../consent/device-codes.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { messagePage } from "../../pages/message-page.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  pageResponse,
  personOf,
  readForm,
  redirect,
  signInPath,
  pageRoute,
} from "../pages/page-response.ts";
import { askConsent, readDecision, type Asked, type ConsentText } from "./consent-form.ts";

const askForCode = (typed: string, problem?: string) =>
  messagePage({
    title: "Connect a device",
    sentences: [
      "Type the code that the app or device shows you. If you were not shown one, close this page.",
    ],
    ...(problem === undefined ? {} : { problem }),
    form: {
      action: "/device",
      button: "Continue",
      fields: [
        {
          name: "user_code",
          label: "Code",
          type: "text",
          autocomplete: "off",
          value: typed,
          code: true,
        },
      ],
    },
  });

const askedBy = ({ keyLabel, clientName, scopes }: PendingDevice): Asked => ({
  withBundles: false,
  terms: {
    label: keyLabel ?? clientName,
    limitNanoUsd: null,
    limitReset: null,
    expiresAtMs: null,
    allowedModels: null,
    scopes,
  },
});

const textOf = (device: PendingDevice, userCode: string): Omit<ConsentText, "problem"> => ({
  title: `Connect ${device.clientName}`,
  lead: `${device.clientName} asks to use this account. Approve only if you started this yourself, just now.`,
  facts: [
    ["Code", shownUserCode(userCode)],
    ["Asked from", device.address],
    ["Asked at", new Date(device.createdAtMs).toUTCString()],
    ["Program", device.userAgent || "unknown"],
  ],
  warnings: [
    "Check that the code is the one on your own screen. Never approve a code that someone sent you.",
  ],
  action: "/device",
  again: `/device?user_code=${shownUserCode(userCode)}`,
  hidden: { user_code: shownUserCode(userCode) },
  formTargets: [],
});

/**
 * Returns the attempt of guessing a code; guesses are limited as sign-in attempts are, with
 * `rate_limit_exceeded`.
 */
const guessOf = (context: RequestContext<unknown>): Attempt => ({
  address: context.clientAddress(),
  purpose: "device",
});

const decidedPage = ({ clientName, approved }: { clientName: string; approved: boolean }) =>
  messagePage(
    approved
      ? {
          title: `${clientName} is connected`,
          sentences: [
            "Go back to the device. You can disconnect it at any time, under connected apps.",
          ],
        }
      : { title: "Declined", sentences: [`${clientName} was not connected.`] },
  );

/**
 * Returns the answer for a code that is no longer pending: what this person decided before, such as
 * with a double click, or that there is no such code.
 */
async function noLongerPending(
  context: RequestContext<unknown>,
  { consent, people }: Pick<Dependencies, "people" | "consent">,
  { userCode, userId }: { userCode: string; userId: string },
): Promise<Response> {
  const decided = await consent.devices.decisionOf(userCode, userId);
  if (decided !== undefined) return pageResponse(context, decidedPage(decided));
  await people.throttle.count(guessOf(context));
  return pageResponse(context, askForCode("", noSuchCode), { status: 404 });
}

const noSuchCode =
  "There is no request with this code. It may have expired or been decided: start again on the device.";

/** Shows the page on which a device is connected (RFC 8628, section 3.3). */
export const devicePage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/device",
  summary: "Show the page that connects a device.",
  query: z.object({ user_code: z.string().optional() }),
  handle(context) {
    const typed = plainUserCode(context.query.get("user_code") ?? "");
    // A code that came with the link is shown and has to be submitted by hand, so that a link alone
    // requests nothing (RFC 8628, section 5.4).
    return pageResponse(context, askForCode(typed === "" ? "" : shownUserCode(typed)));
  },
});

/** Looks a code up, and takes the decision about it. */
export const submitDevice = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/device",
  summary: "Connect a device (form of the page).",
  rawBody: z.object({ user_code: z.string(), decision: z.enum(["approve", "decline"]).optional() }),
  rawBodyType: "application/x-www-form-urlencoded",
  async handle(
    context,
    deps: Pick<Dependencies, "directory" | "people" | "consent" | "clock" | "publicUrl">,
  ) {
    const form = await readForm(context, deps);
    const person = await personOf(context, deps);
    const userCode = plainUserCode(form.get("user_code") ?? "");
    if (userCode === "")
      return pageResponse(context, askForCode("", "Type the code."), { status: 400 });
    if (person === undefined)
      return redirect(context, signInPath(`/device?user_code=${shownUserCode(userCode)}`));
    // Checked before the lookup, so that after too many guesses even a correct one is refused.
    await deps.people.throttle.assertRoom(guessOf(context));
    const device = await deps.consent.devices.findPending(userCode);
    if (device === undefined)
      return noLongerPending(context, deps, { userCode, userId: person.user.id });
    const asked = askedBy(device);
    const text = textOf(device, userCode);
    if (!form.has("decision"))
      return pageResponse(context, await askConsent(deps, person, { asked, text }));
    const decision = await readDecision(deps, person, { form, asked });
    if (decision.kind === "again") {
      return pageResponse(
        context,
        await askConsent(deps, person, { asked, text: { ...text, problem: decision.problem } }),
        {
          status: 400,
        },
      );
    }
    const approved = decision.kind === "approve";
    const workspaceId = approved ? decision.workspaceId : person.workspace.id;
    const decided = await deps.consent.devices.decide({
      userCode,
      userId: person.user.id,
      workspaceId,
      terms: approved ? decision.terms : null,
    });
    if (!decided) return noLongerPending(context, deps, { userCode, userId: person.user.id });
    return pageResponse(context, decidedPage({ clientName: device.clientName, approved }));
  },
});
