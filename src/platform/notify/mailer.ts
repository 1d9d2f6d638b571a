import type { Transporter } from "nodemailer";

/** The server that mail is sent through. */
export interface MailSettings {
  /** `smtp:` or `smtps:` with host, port and credentials. */
  url: string;
  /** The sender, such as `Switchyard <noreply@example.com>`. */
  from: string;
}

/** A mail to one person. It is plain text, so that nothing in it can be taken for markup. */
interface Mail {
  to: string;
  subject: string;
  text: string;
}

/** Sends mail. */
export interface Mailer {
  /** Sends one mail. Rejects when the mail server did not accept it. */
  send(mail: Mail): Promise<void>;
  close(): void;
}

/** Removes line breaks, which would start another header. */
const oneLine = (text: string): string => text.replace(/[\r\n]+/g, " ");

/** Creates a mailer over SMTP. The library is loaded with the first mail. */
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
