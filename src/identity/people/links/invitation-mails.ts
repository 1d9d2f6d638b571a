import { brand } from "../../../platform/kernel/brand.ts";
import { hourMs, type Clock } from "../../../platform/kernel/clock.ts";
import { withinTime } from "../../../platform/kernel/time/within-time.ts";
import type { Mailer } from "../../../platform/notify/mailer.ts";
import { NamedWindows } from "../../../platform/rate-windows/named-windows.ts";
import type { Invitation, mailOutcomes } from "./invitations.ts";

/** One of `mailOutcomes`. */
type MailOutcome = (typeof mailOutcomes)[number];

/**
 * The most invitations that one person sends, and that one address receives, within an hour.
 * Further links have to be passed on by hand.
 */
const sentMax = 30;
const receivedMax = 5;

/** Milliseconds that an answer waits for the outcome of sending the mail. */
const patienceMs = 5_000;

/** Options of the mails of invitations. */
interface InvitationMailOptions {
  mailer: Mailer | undefined;
  clock: Clock;
  /** Called with a mail that could not be sent. */
  onMailError(error: unknown): void;
}

/** The mail with the link of an invitation. */
interface InvitationMail {
  invitation: Invitation;
  organizationName: string;
  inviter: { name: string; email: string };
  /** The link, which works once. */
  url: string;
}

/**
 * Cleans a name for use in a mail. Names come from people whom the recipient may not know, so none
 * may become a link or fill the mail.
 */
const harmless = (name: string): string =>
  name
    .replace(/[\p{C}\p{Z}\s]+/gu, " ")
    .replace(/(?<=\S)([.:/@\\])(?=\S)/gu, "$1 ")
    .slice(0, 80);

/** Sends the links of invitations, where mail is configured. */
export class InvitationMails {
  private readonly sent: NamedWindows;
  private readonly received: NamedWindows;

  constructor(private readonly options: InvitationMailOptions) {
    const size = { windowMs: hourMs, slotMs: 60_000 };
    this.sent = new NamedWindows(options.clock, size);
    this.received = new NamedWindows(options.clock, size);
  }

  /**
   * Sends one mail. Returns its outcome as soon as that is known, or `sending` where it takes too
   * long.
   */
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
