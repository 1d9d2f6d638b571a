import type { Transporter } from "nodemailer";

/** Where mail is handed in. */
export interface MailSettings {
  /** `smtp:` or `smtps:` with host, port and credentials. */
  url: string;
  /** Who it comes from, such as `Switchyard <noreply@example.com>`. */
  from: string;
}

/** A mail to one person; text alone, so that nothing in it can be taken for markup. */
interface Mail {
  to: string;
  subject: string;
  text: string;
}

/** Sends mail. */
export interface Mailer {
  /** Rejects when the mail server did not take it. */
  send(mail: Mail): Promise<void>;
  close(): void;
}

/** Line breaks in a header would begin another one. */
const oneLine = (text: string): string => text.replace(/[\r\n]+/g, " ");

/** Over SMTP. The library is loaded with the first mail. */
export function createMailer({ url, from }: MailSettings): Mailer {
  let transporter: Promise<Transporter> | undefined;
  const load = async (): Promise<Transporter> => {
    const { createTransport } = await import("nodemailer");
    // Nothing in a mail may name a file or an address to be fetched.
    return createTransport({
      url,
      disableFileAccess: true,
      disableUrlAccess: true,
      connectionTimeout: 10_000,
      socketTimeout: 20_000,
    });
  };
  return {
    async send({ to, subject, text }) {
      await (await (transporter ??= load())).sendMail({
        from,
        to,
        subject: oneLine(subject),
        text,
      });
    },
    close() {
      void transporter?.then((opened) => opened.close());
    },
  };
}
