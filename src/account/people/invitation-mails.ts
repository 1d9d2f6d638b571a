import { brand } from "../../platform/lib/brand.ts";
import { hourMs, type Clock } from "../../platform/lib/clock.ts";
import { withinTime } from "../../platform/lib/within-time.ts";
import { NamedWindows } from "../limits/named-windows.ts";
import type { Mailer } from "../notify/mailer.ts";
import type { Invitation } from "./invitations.ts";

/** What became of the mail of an invitation; its link works all the same. */
export const mailOutcomes = ["sent", "sending", "failed", "limited", "not_configured"] as const;

/** See `mailOutcomes`. */
export type MailOutcome = (typeof mailOutcomes)[number];

/** Invitations that one person sends, and that one address gets, within an hour; more have to be handed over. */
const sentMax = 30;
const receivedMax = 5;

/** How long somebody waits to hear what became of the mail. */
const patienceMs = 5_000;

/** What mails of invitations are built from. */
export interface InvitationMailOptions {
  mailer: Mailer | undefined;
  clock: Clock;
  /** Told of a mail that could not be sent. */
  onMailError(error: unknown): void;
}

/** A mail to somebody who is invited. */
export interface InvitationMail {
  invitation: Invitation;
  organizationName: string;
  inviter: { name: string; email: string };
  /** The link, which works once. */
  url: string;
}

/** Names come from people whom the receiver does not know: nothing in them may become a link, and none of them fills the mail. */
const harmless = (name: string): string =>
  name
    .replace(/[\p{C}\p{Z}\s]+/gu, " ")
    .replace(/(?<=\S)([.:/@\\])(?=\S)/gu, "$1 ")
    .slice(0, 80);

/** Sends the links of invitations, where mail is sent. */
export class InvitationMails {
  private readonly options: InvitationMailOptions;
  private readonly sent: NamedWindows;
  private readonly received: NamedWindows;

  constructor(options: InvitationMailOptions) {
    this.options = options;
    const size = { windowMs: hourMs, slotMs: 60_000 };
    this.sent = new NamedWindows(options.clock, size);
    this.received = new NamedWindows(options.clock, size);
  }

  /** Sends one, and tells what became of it as soon as that is known or takes too long. */
  async send({
    invitation: { email, role, inviterUserId },
    organizationName,
    inviter,
    url,
  }: InvitationMail): Promise<MailOutcome> {
    const { mailer, onMailError } = this.options;
    if (mailer === undefined) return "not_configured";
    const may =
      this.sent.tryAdd(inviterUserId, { limit: sentMax }) &&
      this.received.tryAdd(email, { limit: receivedMax });
    if (!may) return "limited";
    const mail = mailer
      .send({
        to: email,
        subject: `Join ${harmless(organizationName)} on ${brand.productName}`,
        text:
          `${harmless(inviter.name)} (${inviter.email}) invites you to the organisation "${harmless(organizationName)}" as ${role}.\n` +
          `The link works once, within a week, for ${email} alone:\n\n${url}\n\n` +
          "If you do not know who this is, there is nothing to do.\n",
      })
      .then(
        () => "sent" as const,
        (error: unknown) => {
          onMailError(error);
          return "failed" as const;
        },
      );
    return withinTime(patienceMs, mail, "sending");
  }
}
